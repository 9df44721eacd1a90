"""What is told of the runs that CHILD nodes ask for, and what their timers bring.

What is told of the run of an earlier attempt, or of one that is waited for no more, changes
nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from perdure.kernel.actions import CancelTasks, ChildFound, StartChild
from perdure.kernel.child_ids import call_id, id_of_attempt
from perdure.kernel.children import cancel_of, until
from perdure.kernel.events import (
    ChildFinished,
    ChildStarted,
    NodeCompleted,
    NodeFailed,
    TimerFired,
)
from perdure.kernel.retries import fail_or_retry
from perdure.kernel.routing import propagate
from perdure.kernel.run import ChildState, Run
from perdure.kernel.tasks import complete
from perdure.kernel.turn import Turn
from perdure.kernel.untold import left_behind
from perdure.model.durations import SECOND
from perdure.model.errors import Canceled, TimedOut
from perdure.model.failure import FailureRecord
from perdure.model.graph import CHILD

_NULL: Final = Raw(b"null")
_UNKNOWN: Final = FailureRecord("unknown", "the run failed without a recorded reason")


def on_child_started(turn: Turn, event: ChildStarted) -> None:
    """The run is there."""
    turn.ignored = _not_awaited(turn.run, event)
    if turn.ignored is None:
        state = turn.run.nodes[event.node]
        assert state.child is not None
        if state.child.created is not None:
            turn.ignored = f"the child of {event.node} was found before"
        else:
            turn.emit(ChildFound(state.task, event.node, event.created, event.typed))


def on_child_finished(turn: Turn, event: ChildFinished) -> None:
    """The run has ended: its output is the node's, or its failure is the attempt's."""
    turn.ignored = _not_awaited(turn.run, event)
    if turn.ignored is not None:
        return
    node, state = event.node, turn.run.nodes[event.node]
    child = state.child
    assert child is not None
    if event.status == "completed":
        try:
            output = _output(turn, child, event.output)
        except Exception as error:
            reason = f"the output of run {child.definition}/{child.id} cannot be read: {error}"
            failure = FailureRecord("input", reason, permanent=True)
            # It did what it was asked for, all the same.
            fail_or_retry(turn, NodeFailed(state.task, node, state.attempt, failure, unknown=True))
            return
        complete(turn, NodeCompleted(state.task, node, state.attempt, output))
        propagate(turn, turn.plan.shape.successors.get(node, ()))
        return
    failure = event.failure or _UNKNOWN
    unknown = turn.plan.undoes and left_behind(event.status, failure)
    if event.status == "canceled":
        failure = FailureRecord(Canceled.kind, failure.message, permanent=True)
        if child.stopping:  # as it was asked to
            unknown = unknown or state.unknown
            turn.emit_cancel(CancelTasks(failure, (node,), "canceled", unknown))
            return
    fail_or_retry(turn, NodeFailed(state.task, node, state.attempt, failure, unknown))


def _output(turn: Turn, child: ChildState, output: Raw | None) -> Raw:
    if output is None:
        return _NULL
    if child.typed == turn.plan.typed:
        return output
    codec = turn.deps.codec
    return codec.opened(output) if child.typed else codec.sealed(output)


def _not_awaited(run: Run, event: ChildStarted | ChildFinished) -> str | None:
    """Why what is told of a child does not count, or None."""
    state = run.nodes.get(event.node)
    if state is None:
        return f"node {event.node} was not reached: it waits for no child"
    if state.status == "pending" and state.child is not None and not state.not_before:
        if call_id(state.task, state.attempt) == event.task:
            return None
        return f"node {event.node} asks for another run now: this is told of an older one"
    if state.status == "pending":
        return f"node {event.node} waits for no child: this is told of an older one"
    return f"node {event.node} is already {state.status}"


# ---------------------------------------------------------------------- times


def is_child(turn: Turn, event: TimerFired) -> bool:
    """Whether the timer is of a node that asks for a run."""
    planned = turn.plan.nodes.get(event.node)
    return planned is not None and planned.type == CHILD


def on_child_timer(turn: Turn, event: TimerFired) -> None:
    """The next attempt is due, or the run has been waited for long enough."""
    turn.ignored = _not_due(turn, event)
    if turn.ignored is not None:
        return
    node = event.node
    state = turn.run.nodes[node]
    child = state.child
    assert child is not None
    if state.not_before:
        id, limit = id_of_attempt(child.id, state.attempt), until(turn, turn.plan.nodes[node])
        turn.emit(
            StartChild(state.task, node, child.definition, id, attempt=state.attempt, wake_at=limit)
        )
        return
    turn.emit(cancel_of(node, state))
    seconds = (turn.plan.nodes[node].timeout or 0) / SECOND
    shown = f"{child.definition}/{child.id}"
    message = f"run {shown} of node {node} took longer than {seconds:g} s"
    failure = FailureRecord(TimedOut.kind, message)
    fail_or_retry(turn, NodeFailed(state.task, node, state.attempt, failure))


def _not_due(turn: Turn, event: TimerFired) -> str | None:
    node, run = event.node, turn.run
    state = run.nodes.get(node)
    if run.status != "running":
        return f"the run is {run.status}: the timer of node {node} no longer counts"
    if state is None or state.status != "pending" or state.task != event.task:
        return f"node {node} does not wait any more: its timer no longer counts"
    if (state.not_before or state.wake_at) != event.due:
        return f"node {node} has another due time: the timer is not its own"
    if turn.now < event.due:
        return f"the timer of node {node} fired {event.due - turn.now} µs early"
    return None
