"""Other runs that a workflow waits for: what is recorded as they are found and as they end.

Whether a child was made for the call, or was there before it, is the store's to decide, once; the
answer is recorded. The child of a call that was given up is the child's own business: its end is
read and changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Raw

from perdure.kernel.actions import ChildFound, CompleteTask, FailTask
from perdure.kernel.events import ChildFinished, ChildStarted
from perdure.model.errors import Canceled
from perdure.model.failure import FailureRecord

if TYPE_CHECKING:
    from perdure.kernel.code.running import Running

_NULL: Final = Raw(b"null")
_UNKNOWN: Final = FailureRecord("unknown", "the run failed without a recorded reason")


def on_child_started(machine: Running, event: ChildStarted) -> str | None:
    """The child is there. A call that only wanted that has its outcome: the child's id."""
    ignored = _not_awaited(machine, event)
    if ignored is not None:
        return ignored
    calls, node = machine.calls, event.node
    child = machine.run.nodes[node].child
    assert child is not None
    if child.created is not None:
        return f"the child of {node} was found before"
    calls.emit(ChildFound(event.task, node, event.created))
    if child.detached:
        output = Raw(msgspec.json.encode(child.id))
        calls.emit(CompleteTask(event.task, node, output=output))
        calls.completed(node, output)
        machine.run_on()
    return None


def on_child_finished(machine: Running, event: ChildFinished) -> str | None:
    """The child has ended: its output, or its failure, is the call's."""
    ignored = _not_awaited(machine, event)
    if ignored is not None:
        return ignored
    calls, node = machine.calls, event.node
    if event.status == "completed":
        output = _NULL if event.output is None else event.output
        calls.emit(CompleteTask(event.task, node, output=output))
        calls.completed(node, output)
    else:
        failure = event.failure or _UNKNOWN
        if event.status == "canceled":
            failure = FailureRecord(Canceled.kind, failure.message, permanent=True)
        calls.emit(FailTask(event.task, node, 0, failure))
        machine.fail_call(node, failure, 0)
    machine.run_on()
    return None


def _not_awaited(machine: Running, event: ChildStarted | ChildFinished) -> str | None:
    """Why what is told of a child does not count, or None."""
    state = machine.run.nodes.get(event.node)
    if state is None or state.task != event.task:
        return f"no call {event.node} waits for this child any more"
    if state.status != "pending" or state.child is None:
        return f"call {event.node} is already {state.status}"
    return None
