"""Untold ends: an attempt is over, and nobody knows what it did.

The card may be charged although the answer never came. So such an end is never taken for a failure
that did nothing: the task remembers it over its further attempts, and unless one of them completes
its own end is unknown as well, however the last one failed. Only runs that can undo ask.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from perdure.kernel.actions import CancelTasks
from perdure.kernel.events import NodeFailed
from perdure.kernel.run import NodeState
from perdure.kernel.turn import Turn
from perdure.model.errors import Canceled, TimedOut
from perdure.model.failure import FailureRecord
from perdure.model.status import TaskStatus

#: Failures that do not tell what the attempt did: somebody stopped waiting for it.
_UNTOLD: Final = frozenset({Canceled.kind, TimedOut.kind, "CancelledError"})


def untold(turn: Turn, event: NodeFailed) -> bool:
    """Whether nobody knows what this attempt did."""
    if not turn.plan.undoes:
        return False
    return event.failure.kind in _UNTOLD if event.unknown is None else event.unknown


def perhaps_done(turn: Turn, event: NodeFailed) -> bool:
    """Whether nobody knows what the task did, if this attempt is its last."""
    return untold(turn, event) or turn.run.nodes[event.node].unknown


def end_idle_tasks(turn: Turn, failure: FailureRecord, nodes: Iterable[str]) -> None:
    """These nodes' tasks, of which no attempt is under way, end as canceled; those of which an
    earlier attempt did nobody knows what, as unknown."""
    states = turn.run.nodes
    _end(turn, failure, "canceled", [(node, _perhaps(states[node])) for node in nodes])


def end_all_tasks(turn: Turn, failure: FailureRecord, nodes: Iterable[str]) -> None:
    """These nodes' tasks end as failed, whatever they are at; nothing is awaited, so nobody knows
    what those do that are under way."""
    states = turn.run.nodes
    _end(turn, failure, "failed", [(node, given_up(turn, states[node])) for node in nodes])


def _end(
    turn: Turn, failure: FailureRecord, status: TaskStatus, nodes: list[tuple[str, bool]]
) -> None:
    for unknown in (False, True):
        some = tuple(node for node, so in nodes if (so and turn.plan.undoes) == unknown)
        if some:
            turn.emit_cancel(CancelTasks(failure, some, status, unknown))


def given_up(turn: Turn, state: NodeState) -> bool:
    """Whether nobody knows what a task did that ends now, without waiting for it."""
    return _perhaps(state) or (state.status == "pending" and not to_come(turn, state))


def to_come(turn: Turn, state: NodeState) -> bool:
    """Whether the attempt has not begun. A child is asked for when its timer says so: until then
    it has not, however late the timer is."""
    return state.not_before > turn.now or (state.child is not None and state.not_before > 0)


def _perhaps(state: NodeState) -> bool:
    """An earlier attempt did nobody knows what; or the task asked for another run, and whose that
    is was never heard."""
    child = state.child
    asked = child is not None and child.created is None and not state.not_before
    return state.unknown or asked


def left_behind(status: str, failure: FailureRecord) -> bool:
    """Whether something may be left of what another run did that ended so: it failed or was
    canceled. One that says that all is undone left nothing; one that says what is not undone, or
    that was stopped half-way and says nothing, may have."""
    left = leaves(failure)
    if left is None:
        return status == "canceled" or failure.kind in _UNTOLD
    return left


def leaves(failure: FailureRecord) -> bool | None:
    """Whether something is left of what a run did that ended with this, or may be; None where it
    says nothing of undoing (see compensation.told)."""
    details = failure.details
    told = details if isinstance(details, dict) else {}
    undone, undo_failed, unknown = map(told.get, ("undone", "undo_failed", "unknown"))
    if isinstance(undone, list) and isinstance(undo_failed, list) and isinstance(unknown, list):
        return bool(undo_failed) or any(node not in undone for node in unknown)
    return None
