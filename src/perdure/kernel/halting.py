"""Halting: a run that may have something to undo comes to rest before anything is undone.

The step in flight may yet charge the card. So a cancel or a deadline fails nothing here: nothing
new begins, what only waits ends as canceled, attempts under way are asked to stop and awaited. One
that completes is completed (and undone); of one that was given up nobody knows what it did. How
long attempts are awaited is bounded by their own timeouts, else by a durable timer.
"""

from __future__ import annotations

from typing import Final

from msgspec import Raw

from perdure.kernel.actions import CancelTasks, CreateTask, FailTask, RequestStop, ResolveWait
from perdure.kernel.children import drained, let_go
from perdure.kernel.events import (
    AttemptGivenUp,
    DeadlineReached,
    NodeCompleted,
    NodeFailed,
    RunCancelled,
    TimerFired,
)
from perdure.kernel.run import COMPENSATING, GRACE, require_running
from perdure.kernel.tasks import complete, stale
from perdure.kernel.turn import Turn
from perdure.kernel.untold import end_idle_tasks, perhaps_done, to_come, untold
from perdure.kernel.wakes import not_due, on_timer_fired
from perdure.model.durations import SECOND
from perdure.model.errors import Canceled
from perdure.model.failure import FailureRecord

_NULL: Final = Raw(b"null")


def undone_for(turn: Turn, reason: str) -> str:
    """The reason for which the run would be undone if it were to end for this one now: what came
    first counts, so a failure that ends the run already does; "" = it would not be undone."""
    plan = turn.plan
    if not plan.undoes:
        return ""
    if "failure" in plan.undo_on and turn.gives_up:
        return "failure"
    return reason if reason in plan.undo_on else ""


def halt(turn: Turn, failure: FailureRecord, reason: str) -> None:
    """Begin nothing more, and wait for what is under way."""
    turn.emit_for_run(RequestStop(failure, reason))
    end_idle(turn, failure)
    if _unbounded(turn):
        due = turn.now + turn.plan.grace
        turn.emit(CreateTask(turn.new_id(), GRACE, "waiting", wake_at=due))


def end_idle(turn: Turn, failure: FailureRecord) -> None:
    """End what only waits, also for the time of its next attempt; ask the runs that were made for
    this one to end, which is awaited."""
    idle = tuple(
        node
        for node, state in turn.run.nodes.items()
        if (state.status == "waiting" and node != GRACE)
        or (state.status == "pending" and to_come(turn, state))
    )
    if turn.plan.may_ask:
        others = drained(turn)
        let_go(turn, others)
        idle = (*idle, *others)
    end_idle_tasks(turn, failure, idle)


def wind_down(turn: Turn) -> None:
    """After an event: a child that was found since is asked to end as well (nothing else begins to
    wait), and the timer goes with the last attempt."""
    run = turn.run
    if run.status != "running" or run.phase == COMPENSATING or run.stopping is None:
        return  # it is undoing, or has been retried
    if turn.plan.may_ask:
        end_idle(turn, run.stopping)
    grace = run.nodes.get(GRACE)
    if run.active == 1 and grace is not None and grace.status == "waiting":
        turn.emit(ResolveWait(grace.task, GRACE, "canceled"))


def _unbounded(turn: Turn) -> tuple[str, ...]:
    """The attempts under way that have no timeout of their own."""
    planned = turn.plan.nodes
    return tuple(
        node
        for node, state in turn.run.nodes.items()
        if state.status == "pending"
        and state.child is None
        and not (node in planned and planned[node].timeout)
    )


# ---------------------------------------------------------------------- what comes while it halts


def on_completed(turn: Turn, event: NodeCompleted) -> None:
    """An attempt did it all the same; nothing follows from it."""
    turn.ignored = stale(turn, event)
    if turn.ignored is None:
        complete(turn, event)


def on_failed(turn: Turn, event: NodeFailed) -> None:
    """An attempt failed, which is its last. Where that does not tell what it did, it is given up
    rather than failed: it is the stop that ends it."""
    turn.ignored = stale(turn, event)
    if turn.ignored is not None:
        return
    if untold(turn, event):
        _give_up(turn, event.failure, (event.node,), unknown=True)
    else:
        unknown = perhaps_done(turn, event)
        turn.emit(FailTask(event.task, event.node, event.attempt, event.failure, unknown))


def on_attempt_given_up(turn: Turn, event: AttemptGivenUp) -> None:
    """An attempt ended without an outcome, or never began."""
    turn.ignored = stale(turn, event)
    if turn.ignored is not None:
        return
    why = "it was under way when it was given up" if event.begun else "it had not begun"
    failure = FailureRecord(Canceled.kind, f"the run is to stop: {why}", permanent=True)
    unknown = event.begun or turn.run.nodes[event.node].unknown
    _give_up(turn, failure, (event.node,), unknown=unknown)


def on_timer(turn: Turn, event: TimerFired) -> None:
    """Attempts have been awaited for long enough; or it is another node's timer."""
    if event.node != GRACE:
        on_timer_fired(turn, event)
        return
    turn.ignored = not_due(turn, event)
    if turn.ignored is not None:
        return
    turn.emit(ResolveWait(event.task, GRACE, "completed", output=_NULL))
    seconds = turn.plan.grace / SECOND
    message = f"the attempt had not ended {seconds:g} s after it was asked to stop"
    failure = FailureRecord(Canceled.kind, message, permanent=True)
    _give_up(turn, failure, _unbounded(turn), unknown=True)


def _give_up(turn: Turn, failure: FailureRecord, nodes: tuple[str, ...], *, unknown: bool) -> None:
    if nodes:
        turn.emit_cancel(CancelTasks(failure, nodes, "canceled", unknown))


def not_under_way(turn: Turn, event: AttemptGivenUp) -> None:
    """Of a run that is not to stop: its attempts are made until they have an outcome."""
    turn.ignored = f"the run is not to stop: the attempt of node {event.node} has no outcome yet"


def on_cancelled_again(turn: Turn, event: RunCancelled) -> None:
    """The first reason stays. Raises RunFinished after the end."""
    require_running(turn.run)
    _stays(turn)


def on_deadline(turn: Turn, event: DeadlineReached) -> None:
    """The first reason stays."""
    if turn.run.status != "running":
        turn.ignored = f"the run is already {turn.run.status}"
    else:
        _stays(turn)


def _stays(turn: Turn) -> None:
    run = turn.run
    assert run.stopping is not None
    what = "undoes what it did" if run.phase == COMPENSATING else "is stopping"
    turn.ignored = f"the run {what} already: {run.stopping.message}"
