"""What happened to a workflow's run, event by event: what is recorded, and what its code is told.

Each handler checks that the event still matters and returns why not, or records it and lets the
code run on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw

from perdure.kernel.actions import (
    BeginRun,
    BufferSignal,
    CompleteTask,
    CreateTask,
    FailTask,
    RequestStop,
    ResolveWait,
    RetryTask,
    SetPaused,
)
from perdure.kernel.code.call import StepFuture
from perdure.kernel.code.callbacks import Timer
from perdure.kernel.code.children import on_child_finished, on_child_started
from perdure.kernel.code.running import Running, stopped
from perdure.kernel.code.waits import waiting_for
from perdure.kernel.events import (
    ChildFinished,
    ChildStarted,
    DeadlineReached,
    NodeCompleted,
    NodeFailed,
    RunBegun,
    RunCancelled,
    RunPaused,
    RunStarted,
    RunUnpaused,
    SignalReceived,
    TimerFired,
)
from perdure.kernel.fold import complete_task
from perdure.kernel.opening import opening
from perdure.kernel.retries import when_again
from perdure.kernel.run import GRACE, require_running
from perdure.kernel.tasks import stale
from perdure.kernel.wakes import checked_signal, not_due
from perdure.model.errors import Canceled, InvalidRequest, TimedOut
from perdure.model.failure import FailureRecord

#: Why a run ends at its deadline.
OVER: Final = "the run reached its max_duration"


def on_run_started(machine: Running, event: RunStarted) -> str | None:
    """Open the run. Its code begins with RunBegun, on the worker that owns it."""
    program = machine.program
    if machine.run.status != "new":
        raise InvalidRequest("the run has already started")
    if event.start_node is not None:
        raise InvalidRequest("start_node is for graphs: a workflow begins at its first line")
    machine.calls.emit(opening(program, event))
    return None


def on_run_begun(machine: Running, event: RunBegun) -> str | None:
    """The function is called; not where the run's time is over by then, which who started it did
    not know: nothing begins after a deadline."""
    run = machine.run
    if run.status != "running" or run.begun:
        return "the run has begun already"
    deadline = event.deadline if run.deadline is None else None
    if deadline is not None and deadline <= machine.now:
        return _stop(machine, FailureRecord(TimedOut.kind, OVER, permanent=True))
    machine.calls.emit(BeginRun(deadline))
    machine.begin()
    machine.run_on()
    return None


def on_node_completed(machine: Running, event: NodeCompleted) -> str | None:
    """A step's outcome, once."""
    ignored = stale(machine, event)
    if ignored is None:
        calls, node, output = machine.calls, event.node, event.output
        done = CompleteTask(event.task, node, event.attempt, output)
        complete_task(machine.run, done)
        calls.recording().append(done)
        calls.completed(node, output)
        machine.run_on()
    return ignored


def on_node_failed(machine: Running, event: NodeFailed) -> str | None:
    """Another attempt, or the step has failed for good and the code is told."""
    ignored = stale(machine, event)
    if ignored is not None:
        return ignored
    node, failure, calls = event.node, event.failure, machine.calls
    call = calls.open[node]
    assert not isinstance(call, Timer) and call.how is not None  # noqa: PT018
    due = None
    if machine.run.stopping is None or call.cleaning:
        state = machine.run.nodes[node]
        due = when_again(call.how.policy, event, state.first_due, machine.now, machine.deps.roll)
    if due is not None:
        calls.emit(RetryTask(event.task, node, event.attempt, failure, due))
        if isinstance(call, StepFuture):
            calls.open[node] = call.again()
        return None
    calls.emit(FailTask(event.task, node, event.attempt, failure))
    machine.fail_call(node, failure, event.attempt)
    machine.run_on()
    return None


def on_timer_fired(machine: Running, event: TimerFired) -> str | None:
    """A sleep is over, a wait has timed out, or the time to clean up is."""
    ignored = not_due(machine, event)
    if ignored is not None:
        return ignored
    calls, node = machine.calls, event.node
    if node == GRACE:
        calls.emit(ResolveWait(event.task, node, "completed", output=Raw(b"null")))
        stopping = machine.run.stopping
        assert stopping is not None
        machine.close_down(stopped(stopping))
        return None
    state = machine.run.nodes[node]
    if state.awaited_signal is not None:
        message = f'timed out waiting for signal "{state.awaited_signal}"'
        failure = FailureRecord(TimedOut.kind, message, permanent=True)
        calls.emit(ResolveWait(event.task, node, "failed", failure=failure))
        machine.fail_call(node, failure, 0)
    else:
        calls.emit(ResolveWait(event.task, node, "completed", output=Raw(b"null")))
        calls.completed(node, Raw(b"null"))
    machine.run_on()
    return None


def on_signal_received(machine: Running, event: SignalReceived) -> str | None:
    """To the call that has waited longest for it, or kept."""
    payload = checked_signal(machine.deps.codec, event.name, event.payload)
    require_running(machine.run)
    if any(kept.id == event.id for kept in machine.run.signals):
        return f"signal {event.id} is kept already: this one is a duplicate"
    calls = machine.calls
    call = waiting_for(calls, event.name)
    if call is None:
        calls.emit(BufferSignal(event.id, event.name, payload))
        return None
    value = payload if payload is not None else Raw(b"null")
    calls.emit(ResolveWait(call.task, call.node, "completed", output=value))
    calls.completed(call.node, value)
    machine.run_on()
    return None


def on_run_cancelled(machine: Running, event: RunCancelled) -> str | None:
    """One CancelledError at the function's current await; then a while to clean up."""
    require_running(machine.run)
    failure = FailureRecord(Canceled.kind, event.reason or "cancelled", permanent=True)
    return _stop(machine, failure)


def on_deadline_reached(machine: Running, event: DeadlineReached) -> str | None:
    """The same, and the run fails with `workflow.timeout`."""
    run = machine.run
    if run.status != "running":
        return f"the run is already {run.status}"
    if run.deadline is None or machine.now < run.deadline:
        return "the run's deadline has not come yet"
    return _stop(machine, FailureRecord(TimedOut.kind, OVER, permanent=True))


def _stop(machine: Running, failure: FailureRecord) -> str | None:
    calls, run = machine.calls, machine.run
    if run.stopping is not None:
        return f"the run is stopping already: {run.stopping.message}"
    calls.emit(RequestStop(failure))
    if machine.root is None:  # it has not begun: nothing is there to clean up
        calls.emit(stopped(failure))
        return None
    machine.stop()
    machine.run_on()
    if run.status == "running":
        due = machine.now + machine.program.grace
        calls.emit(CreateTask(machine.deps.new_id(), GRACE, "waiting", wake_at=due))
    return None


def on_run_paused(machine: Running, event: RunPaused) -> str | None:
    """Hold dispatches. Raises RunFinished after the end."""
    return _set_paused(machine, True)


def on_run_unpaused(machine: Running, event: RunUnpaused) -> str | None:
    """Let dispatches go on. Raises RunFinished after the end."""
    return _set_paused(machine, False)


def _set_paused(machine: Running, paused: bool) -> str | None:
    require_running(machine.run)
    if machine.run.paused == paused:
        return "the run is paused already" if paused else "the run is not paused"
    machine.calls.emit(SetPaused(paused))
    return None


HANDLERS: Final[dict[type, Callable[[Running, Any], str | None]]] = {
    RunStarted: on_run_started,
    RunBegun: on_run_begun,
    NodeCompleted: on_node_completed,
    NodeFailed: on_node_failed,
    TimerFired: on_timer_fired,
    SignalReceived: on_signal_received,
    ChildStarted: on_child_started,
    ChildFinished: on_child_finished,
    RunCancelled: on_run_cancelled,
    DeadlineReached: on_deadline_reached,
    RunPaused: on_run_paused,
    RunUnpaused: on_run_unpaused,
}
