"""Compensation: before a run ends otherwise than well, what its nodes did is undone.

One undo at a time, in reverse order of completion: what came last may rest on what came before. An
undo is a task of its own, node `X~undo`, with its own retry policy; nothing cancels it. One that
fails for good is recorded and told of with the run's end, and keeps no other from being made. All
is worked out from the snapshot, so a journal that ends in the middle is gone on with.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

import msgspec
from msgspec import Raw

from perdure.kernel.actions import (
    BeginCompensation,
    CompensateTask,
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    RetryTask,
)
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.kernel.plan import UNDO, GraphPlan, undo_of
from perdure.kernel.retries import when_again
from perdure.kernel.run import Run
from perdure.kernel.tasks import stale
from perdure.kernel.turn import Turn
from perdure.model.failure import FailureRecord
from perdure.model.status import RunStatus

#: The stored input of every undo: what it needs stands around it.
_NULL: Final = Raw(b"null")


def begin_undoing(turn: Turn, reason: str, failure: FailureRecord) -> bool:
    """Begin to undo, if the run ends for a reason after which that is done and there is something
    to undo. `failure`: what the run ends with then."""
    if not undoes_after(turn, reason) or not any(_is_due(turn, node) for node in turn.run.nodes):
        return False
    turn.emit_for_run(BeginCompensation(reason, failure, turn.run.unknown))
    undo_next(turn)
    return True


def undo_next(turn: Turn) -> None:
    """Undo what was done last and is not undone yet; when there is nothing left, the run ends."""
    node = _next(turn)
    if node is None:
        assert turn.run.stopping is not None
        end(turn, turn.run.stopping)
        return
    task, id = turn.new_id(), undo_of(node)
    turn.emit(CreateTask(task, id, "pending", _NULL))
    turn.emit(DispatchTask(task, id, queue=turn.plan.nodes[node].queue))


def undoes_after(turn: Turn, reason: str) -> bool:
    """Whether what was done is undone where the run ends for this reason."""
    return turn.plan.undoes and reason in turn.plan.undo_on


def _next(turn: Turn) -> str | None:
    """The node to undo next: of those that completed, or may have, the last one whose undo has
    not been made. The node that was reached last is the undo made last; none reaches others."""
    run = turn.run
    done, nodes = run.done, run.nodes
    at, last = len(done), next(reversed(nodes))
    if last.endswith(UNDO):
        number = nodes[last.removesuffix(UNDO)].completed_no
        at = bisect_left(done, number, key=lambda node: nodes[node].completed_no)
    before = (done[place] for place in range(at - 1, -1, -1))
    return next((node for node in before if _is_due(turn, node)), None)


def _is_due(turn: Turn, node: str) -> bool:
    """Whether there is something to undo: the node completed, or may have, and has an undo."""
    state, planned = turn.run.nodes[node], turn.plan.nodes.get(node)
    undo = None if planned is None or not state.completed_no else planned.undo
    return undo is not None and (state.status == "completed" or (state.unknown and undo.unknown))


def to_undo(plan: GraphPlan, run: Run) -> tuple[str, ...]:
    """What is undone of a run that compensates, also when a part of it is by now: the nodes, in
    the order in which they are."""
    found = [
        (-state.completed_no, node)
        for node, state in run.nodes.items()
        if state.completed_no
        and undo_of(node) in plan.undos
        and (state.status in ("completed", "compensated") or plan.undos[undo_of(node)].unknown)
    ]
    return tuple(node for _, node in sorted(found))


def end(turn: Turn, failure: FailureRecord) -> None:
    """The run ends with this failure, for the reason that stopped it."""
    run = turn.run
    status: RunStatus = "canceled" if run.reason == "cancel" else "failed"
    turn.emit_for_run(FinishRun(status, failure=told(turn, failure, run.reason)))


def told(turn: Turn, failure: FailureRecord, reason: str) -> FailureRecord:
    """The run's failure, with what became of what its nodes did: somebody must look at undos that
    failed, and at nodes of which nobody knows what they did. Left as it is where nothing is undone
    after such an end, and all that was done is known."""
    run = turn.run
    if not run.unknown and not undoes_after(turn, reason):
        return failure
    nodes = run.nodes
    undone = [node for node, state in nodes.items() if state.status == "compensated"]
    undone.sort(key=lambda node: -nodes[node].completed_no)
    found = {
        "undone": undone,
        "undo_failed": [n.removesuffix(UNDO) for n, _ in run.failures if n.endswith(UNDO)],
        "unknown": list(run.unknown),
    }
    details = failure.details
    before = details if isinstance(details, dict) else {} if details is None else {"told": details}
    return msgspec.structs.replace(failure, details={**before, **found})


# ---------------------------------------------------------------------- reports of undos


def on_undone(turn: Turn, event: NodeCompleted) -> None:
    """What a node did is undone."""
    turn.ignored = stale(turn, event)
    if turn.ignored is not None:
        return
    turn.emit(
        CompleteTask(event.task, event.node, event.attempt, event.output, None, event.metadata)
    )
    node = event.node.removesuffix(UNDO)
    turn.emit(CompensateTask(turn.run.nodes[node].task, node))


def on_undo_failed(turn: Turn, event: NodeFailed) -> None:
    """Another attempt of the undo if its policy allows it, else it has failed for good."""
    turn.ignored = stale(turn, event)
    if turn.ignored is not None:
        return
    undo, due = turn.plan.undos.get(event.node), None
    if undo is not None:
        first_due = turn.run.nodes[event.node].first_due
        due = when_again(undo.retry, event, first_due, turn.now, turn.deps.roll)
    if due is None:
        turn.emit(FailTask(event.task, event.node, event.attempt, event.failure))
    else:
        turn.emit(RetryTask(event.task, event.node, event.attempt, event.failure, due))
