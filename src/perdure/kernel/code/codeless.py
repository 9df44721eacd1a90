"""Ending a run without its code: what is left of a cancel or a deadline when the code cannot go on.

The code on hand does not do what it did, or never comes to rest. Nothing more is asked of it then,
not even to clean up: what is open is given up, and recorded as given up, so that fitting code may
be retried from there. Only an end is decided here. Whatever the code would have reacted to is
ignored; a signal is kept, since a retry may want it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from perdure.kernel.actions import (
    BufferSignal,
    CancelChild,
    CancelTasks,
    RequestStop,
    ResolveWait,
)
from perdure.kernel.code.running import Running, stopped
from perdure.kernel.events import (
    DeadlineReached,
    Event,
    RunCancelled,
    SignalReceived,
    TimerFired,
)
from perdure.kernel.run import GRACE, require_running
from perdure.kernel.wakes import checked_signal, not_due
from perdure.model.errors import Canceled, TimedOut
from perdure.model.failure import FailureRecord

#: What the failure of such a run says after its reason; its details say why ("stalled").
WITHOUT_CODE: Final = "ended without its code, which could not go on: nothing was cleaned up"


def decide_without_code(machine: Running, event: Event) -> str | None:
    """See happened.HANDLERS."""
    handler = _HANDLERS.get(type(event))
    if handler is None:
        return f"the run is about to end without its code: {machine.given_up}"
    return handler(machine, event)


def _on_run_cancelled(machine: Running, event: RunCancelled) -> str | None:
    require_running(machine.run)
    return _end(machine, Canceled.kind, event.reason or "cancelled")


def _on_deadline_reached(machine: Running, event: DeadlineReached) -> str | None:
    run = machine.run
    if run.status != "running":
        return f"the run is already {run.status}"
    if run.deadline is None or machine.now < run.deadline:
        return "the run's deadline has not come yet"
    return _end(machine, TimedOut.kind, "the run reached its max_duration")


def _on_timer_fired(machine: Running, event: TimerFired) -> str | None:
    """The time to clean up is over, in which the code got stuck."""
    ignored = not_due(machine, event)
    if ignored is not None or event.node != GRACE:
        return ignored or "the code that waits for this timer cannot go on"
    return _end(machine, Canceled.kind, "cancelled")


def _on_signal_received(machine: Running, event: SignalReceived) -> str | None:
    payload = checked_signal(machine.deps.codec, event.name, event.payload)
    require_running(machine.run)
    if any(kept.id == event.id for kept in machine.run.signals):
        return f"signal {event.id} is kept already: this one is a duplicate"
    machine.calls.emit(BufferSignal(event.id, event.name, payload))
    return None


def _end(machine: Running, kind: str, reason: str) -> str | None:
    """Everything that is open is given up, and the run ends. One that was stopping already ends
    for the reason for which it stops."""
    run, calls = machine.run, machine.calls
    kind, reason = (kind, reason) if run.stopping is None else (
        run.stopping.kind, run.stopping.message,
    )  # fmt: skip
    failure = FailureRecord(
        kind, f"{reason}; {WITHOUT_CODE}", permanent=True, details={"stalled": machine.given_up}
    )
    calls.emit(RequestStop(failure))
    pending: list[str] = []
    for node, state in list(run.nodes.items()):
        if state.status == "waiting":
            calls.emit(ResolveWait(state.task, node, "canceled", failure=failure))
        elif state.status == "pending":
            pending.append(node)
            child = state.child
            if child is not None and not child.detached:
                calls.emit(CancelChild(state.task, node, child.definition, child.id))
    if pending:
        calls.emit(CancelTasks(failure, tuple(pending), "canceled"))
    machine.end_with(stopped(failure))
    return None


_HANDLERS: Final[dict[type, Callable[[Any, Any], str | None]]] = {
    RunCancelled: _on_run_cancelled,
    DeadlineReached: _on_deadline_reached,
    TimerFired: _on_timer_fired,
    SignalReceived: _on_signal_received,
}
