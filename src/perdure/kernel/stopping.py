"""Ends that somebody or something orders: a cancel, the deadline, a failure that stops the rest.

Everything active ends with the run, in one transition: nothing is left that a timer, a signal or
a late report could wake (scenarios 23, 37, 40). A run with something to undo comes to rest first
(kernel.halting). Pausing stands here too: it holds dispatches and
changes no decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.kernel.actions import FailTask, FinishRun, SetPaused
from perdure.kernel.children import let_go
from perdure.kernel.compensation import told
from perdure.kernel.events import DeadlineReached, RunCancelled, RunPaused, RunUnpaused
from perdure.kernel.halting import end_idle, halt, undone_for
from perdure.kernel.run import require_running
from perdure.kernel.turn import Turn
from perdure.kernel.untold import end_all_tasks, given_up
from perdure.kernel.waits import fail
from perdure.model.errors import Canceled, TimedOut
from perdure.model.failure import FailureRecord
from perdure.model.status import ACTIVE

#: Of the nodes that a deadline found active, so many are named.
_NAMED: Final = 3


def on_run_cancelled(turn: Turn, event: RunCancelled) -> None:
    """Everything active fails with the reason, and the run is canceled (D-39).

    Raises RunFinished after the end (G-94).
    """
    require_running(turn.run)
    failure = FailureRecord(Canceled.kind, event.reason or "cancelled", permanent=True)
    if why := undone_for(turn, "cancel"):
        halt(turn, failure, why)
        return
    nodes = active_nodes(turn)
    let_go(turn, nodes)
    end_all_tasks(turn, failure, nodes)
    turn.emit_for_run(FinishRun("canceled", failure=told(turn, failure, "cancel")))


def on_deadline_reached(turn: Turn, event: DeadlineReached) -> None:
    """Whatever is active fails, and the run with it, kind `workflow.timeout` (D-1)."""
    run = turn.run
    if run.status != "running":
        turn.ignored = f"the run is already {run.status}"
        return
    if run.deadline is None or turn.now < run.deadline:
        turn.ignored = "the run's deadline has not come yet"
        return
    active = active_nodes(turn)
    message = f"the run reached its max_duration{_before(active)}"
    failure = FailureRecord(TimedOut.kind, message, permanent=True)
    if why := undone_for(turn, "timeout"):
        halt(turn, failure, why)
        return
    let_go(turn, active)
    for node, state in list(run.nodes.items()):
        if state.status == "pending":
            unknown = turn.plan.undoes and given_up(turn, state)
            turn.emit(FailTask(state.task, node, state.attempt, failure, unknown))
        elif state.status == "waiting":
            fail(turn, node, state, failure)
    turn.emit_for_run(FinishRun("failed", failure=told(turn, failure, "timeout")))


def _before(nodes: Sequence[str]) -> str:
    if not nodes:
        return ""
    more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
    return f" before {', '.join(nodes[:_NAMED])}{more} had ended"


def stop_the_rest(turn: Turn) -> None:
    """A node failed for good and the definition does not go on then: `cancel` ends all that is
    active (or, where that is undone then, asks it to end); `drain` ends what only waits, asks the
    runs that were made for this one to end, and lets these and running attempts finish (D-17)."""
    run = turn.run
    if not (turn.failed_now or turn.plan.may_ask):
        return  # done when it failed: nothing begins to wait since, unless a child is found
    first, reason = run.failures[run.old_failures]
    failure = FailureRecord(
        Canceled.kind, f"canceled because node {first} failed: {reason.message}", permanent=True
    )
    if turn.plan.on_failure != "cancel":
        end_idle(turn, failure)
    elif why := undone_for(turn, "failure"):
        halt(turn, failure, why)
    else:
        nodes = active_nodes(turn)
        let_go(turn, nodes)
        end_all_tasks(turn, failure, nodes)


def active_nodes(turn: Turn) -> tuple[str, ...]:
    """The nodes that have not ended, in the order in which they were reached."""
    return tuple(node for node, state in turn.run.nodes.items() if state.status in ACTIVE)


def on_run_paused(turn: Turn, event: RunPaused) -> None:
    """Hold dispatches. Raises RunFinished after the end."""
    _set_paused(turn, True)


def on_run_unpaused(turn: Turn, event: RunUnpaused) -> None:
    """Let dispatches go on. Raises RunFinished after the end."""
    _set_paused(turn, False)


def _set_paused(turn: Turn, paused: bool) -> None:
    require_running(turn.run)
    if turn.run.paused == paused:
        turn.ignored = "the run is paused already" if paused else "the run is not paused"
    else:
        turn.emit_for_run(SetPaused(paused))
