"""What ends a wait: its timer, or a signal from outside; and what keeps a signal nobody awaits.

A timer counts only for the wait it was armed for: same task, still waiting, same due time, and
not early (D-13); a late one is harmless (scenarios 27, 40). A signal goes to exactly one node,
the one that has waited longest for its name, or is kept, never lost (G-81, G-82).
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from msgspec import Raw

from perdure.kernel.actions import BufferSignal
from perdure.kernel.child_reports import is_child, on_child_timer
from perdure.kernel.events import SignalReceived, TimerFired
from perdure.kernel.protocol import Codec
from perdure.kernel.routing import propagate
from perdure.kernel.run import NodeState, Run, require_running
from perdure.kernel.turn import Turn
from perdure.kernel.wait_specs import MAX_SIGNAL_NAME
from perdure.kernel.waits import fail, resolve, signal_output, woke_at
from perdure.model.errors import InvalidRequest
from perdure.model.failure import FailureRecord

_BLANKS: Final = frozenset(b" \t\r\n")
#: The output of a wait for a signal that timed out, and went on.
TIMED_OUT: Final = Raw(b'{"timed_out":true}')
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class Timed(Protocol):
    """Whoever decides on a run's snapshot at some time (µs since the epoch)."""

    run: Run
    now: int


def on_timer_fired(turn: Turn, event: TimerFired) -> None:
    """A WAIT is over; a wait for a signal has timed out, which fails it unless the document says
    that it goes on then (G-87); or it is of a CHILD."""
    if turn.plan.may_ask and is_child(turn, event):
        on_child_timer(turn, event)
        return
    turn.ignored = not_due(turn, event)
    if turn.ignored is not None:
        return
    node = event.node
    state, planned = turn.run.nodes[node], turn.plan.nodes.get(node)
    output = woke_at(turn.now) if state.awaited_signal is None else TIMED_OUT
    if output is TIMED_OUT and not (planned is not None and planned.goes_on):
        message = f'timed out waiting for signal "{state.awaited_signal}"'
        fail(turn, node, state, FailureRecord("workflow.timeout", message, permanent=True))
        return
    resolve(turn, node, state, output)
    propagate(turn, turn.plan.shape.successors.get(node, ()))


def not_due(turn: Timed, event: TimerFired) -> str | None:
    """Why a timer does not count, or None when it does (G-86)."""
    node, state = event.node, turn.run.nodes.get(event.node)
    if turn.run.status != "running":
        return f"the run is {turn.run.status}: the timer of node {node} no longer counts"
    if state is None:
        return f"node {node} was not reached: it has no timer"
    if state.task != event.task:
        return f"node {node} has another task now: the timer is of an older one"
    if state.status != "waiting":
        return f"node {node} is {state.status}: its timer no longer counts"
    if state.wake_at != event.due:
        return f"the wait of node {node} has another due time: the timer is not its own"
    if turn.now < event.due:
        return f"the timer of node {node} fired {event.due - turn.now} µs early"
    return None


def on_signal_received(turn: Turn, event: SignalReceived) -> None:
    """Give the signal to the oldest node that waits for it, or keep it.

    Raises InvalidRequest for a name or payload that cannot be, RunFinished after the end.
    """
    payload = checked_signal(turn.deps.codec, event.name, event.payload)
    require_running(turn.run)
    if any(kept.id == event.id for kept in turn.run.signals):
        turn.ignored = f"signal {event.id} is kept already: this one is a duplicate"
        return
    found = longest_waiting(turn, event.name)
    if found is None:
        turn.emit_for_run(BufferSignal(event.id, event.name, payload))
        return
    node, state = found
    resolve(turn, node, state, signal_output(payload))
    turn.signal_delivered = True
    propagate(turn, turn.plan.shape.successors.get(node, ()))


def longest_waiting(turn: Turn, name: str) -> tuple[str, NodeState] | None:
    """The node that has waited longest for the signal: task ids are ordered in time (G-82)."""
    waiting = [
        (state.task, node)
        for node, state in turn.run.nodes.items()
        if state.awaited_signal == name and state.status == "waiting"
    ]
    if not waiting:
        return None
    node = min(waiting)[1]
    return node, turn.run.nodes[node]


def checked_signal(codec: Codec, name: str, payload: Raw | None) -> Raw | None:
    """The payload as it is recorded: without blanks around it, None when there is none."""
    if not name:
        raise InvalidRequest("a signal needs a name")
    if len(name) > MAX_SIGNAL_NAME:
        raise InvalidRequest(
            f"the signal's name has {len(name)} characters: use at most {MAX_SIGNAL_NAME}"
        )
    if _SURROGATE.search(name):
        raise InvalidRequest("the signal's name is not valid Unicode")
    if not payload:
        return None
    try:
        codec.decode(payload)
    except InvalidRequest as error:
        raise InvalidRequest(f"the payload of signal {name} is {error}") from error
    ends = memoryview(payload)
    return Raw(bytes(payload).strip()) if {ends[0], ends[-1]} & _BLANKS else payload
