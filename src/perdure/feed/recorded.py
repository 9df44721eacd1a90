"""Events told from what was recorded: what each action of a run is to whoever listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeAlias

from perdure.codec.failures import failure_from
from perdure.feed.events import (
    WaitEnded,
    WaitStarted,
    WorkflowCanceled,
    WorkflowCompensationCompleted,
    WorkflowCompensationFailed,
    WorkflowCompensationStarted,
    WorkflowCompleted,
    WorkflowContinued,
    WorkflowFailed,
    WorkflowPaused,
    WorkflowStepCompleted,
    WorkflowStepFailed,
    WorkflowStepRetrying,
    WorkflowStepSkipped,
    WorkflowStepStarted,
    WorkflowTimedOut,
    WorkflowUnpaused,
)
from perdure.kernel.actions import (
    BeginCompensation,
    CancelTasks,
    CompleteTask,
    Continued,
    CreateTask,
    FailTask,
    FinishRun,
    ResolveWait,
    RetryTask,
    SetPaused,
    StartChild,
)
from perdure.kernel.compensation import to_undo
from perdure.kernel.machine import GraphMachine
from perdure.kernel.plan import UNDO
from perdure.kernel.protocol import Machine
from perdure.kernel.run import COMPENSATING, Run
from perdure.model import errors
from perdure.model.errors import Failure, RunFailed
from perdure.model.failure import FailureRecord
from perdure.model.moments import moment

#: A kind of event, and its fields but for the run and the time.
Told: TypeAlias = Iterator[tuple[type[Any], dict[str, Any]]]

_UNKNOWN: Final = FailureRecord("unknown", "no reason was recorded")


class Standing(Protocol):
    """A run as it stands once the action is durable, or later."""

    @property
    def run(self) -> Run:
        """Its snapshot."""

    @property
    def machine(self) -> Machine:
        """Its machine."""


def events_of(standing: Standing, action: Any) -> Told:
    """What an action of the run is told as; nothing, of many."""
    make = _EVENTS.get(type(action))
    return iter(()) if make is None else make(standing, action)


def _created(standing: Standing, action: CreateTask) -> Told:
    step = {"step": action.node}
    if action.status == "skipped":
        yield WorkflowStepSkipped, step
    elif action.status == "failed":
        yield WorkflowStepFailed, {**step, "attempt": 0, "failure": _step_failure(action.failure)}
    elif action.status == "completed":
        yield WorkflowStepCompleted, {**step, "attempt": 0}
    elif action.status == "waiting":
        until = None if action.wake_at is None else moment(action.wake_at)
        yield WaitStarted, {**step, "signal": action.awaited_signal, "until": until}


def _asked(standing: Standing, action: StartChild) -> Told:
    yield WorkflowStepStarted, {"step": action.node, "attempt": action.attempt + 1}


def _completed(standing: Standing, action: CompleteTask) -> Told:
    yield WorkflowStepCompleted, {"step": action.node, "attempt": action.attempt + 1}


def _failed(standing: Standing, action: FailTask) -> Told:
    failure = _step_failure(action.failure)
    yield (
        WorkflowStepFailed,
        {"step": action.node, "attempt": action.attempt + 1, "failure": failure},
    )
    if action.node.endswith(UNDO):
        step = action.node.removesuffix(UNDO)
        yield WorkflowCompensationFailed, {"step": step, "failure": failure}


def _retrying(standing: Standing, action: RetryTask) -> Told:
    yield (
        WorkflowStepRetrying,
        {
            "step": action.node,
            "attempt": action.attempt + 1,
            "failure": _step_failure(action.failure),
            "next_attempt": moment(action.not_before),
        },
    )


def _resolved(standing: Standing, action: ResolveWait) -> Told:
    ok = action.status == "completed"
    failure = None if ok else _step_failure(action.failure)
    yield WaitEnded, {"step": action.node, "failure": failure}


def _cancelled(standing: Standing, action: CancelTasks) -> Told:
    for node in action.nodes:
        failure = _step_failure(action.failure)
        yield WorkflowStepFailed, {"step": node, "attempt": 0, "failure": failure}


def _continued(standing: Standing, action: Continued) -> Told:
    yield WorkflowContinued, {"version": action.version}


def _paused(standing: Standing, action: SetPaused) -> Told:
    yield (WorkflowPaused if action.paused else WorkflowUnpaused), {}


def _undoes(standing: Standing, action: BeginCompensation) -> Told:
    failure = failure_from(action.failure, RunFailed)
    machine = standing.machine
    steps = to_undo(machine.plan, standing.run) if isinstance(machine, GraphMachine) else ()
    yield (
        WorkflowCompensationStarted,
        {"reason": action.reason, "failure": failure, "steps": steps},
    )


def _finished(standing: Standing, action: FinishRun) -> Told:
    record = action.failure or _UNKNOWN
    if standing.run.phase == COMPENSATING and isinstance(record.details, dict):
        undone, failed = record.details.get("undone", ()), record.details.get("undo_failed")
        if not failed:
            yield WorkflowCompensationCompleted, {"steps": tuple(undone)}
    if action.status == "completed":
        yield WorkflowCompleted, {}
    elif action.status == "canceled":
        yield WorkflowCanceled, {"reason": record.message}
    else:
        details = record.details
        node = details.get("node") if isinstance(details, dict) else None
        step = node if isinstance(node, str) else ""
        kind = WorkflowTimedOut if _reached_deadline(standing, record, step) else WorkflowFailed
        yield kind, {"step": step, "failure": failure_from(record, RunFailed)}


def _reached_deadline(standing: Standing, record: FailureRecord, step: str) -> bool:
    """Whether the run failed by its deadline, and not by something else that took too long. One
    that never began is told of a deadline by its end alone."""
    deadline, stopping = standing.run.deadline, standing.run.stopping
    if record.kind != errors.TimedOut.kind or step:
        return False
    stopped = stopping is not None and stopping.kind == errors.TimedOut.kind
    return stopped or (deadline is not None and standing.run.at >= deadline)


#: Of each action that is told.
_EVENTS: Final[dict[type, Callable[[Standing, Any], Told]]] = {
    CreateTask: _created,
    StartChild: _asked,
    CompleteTask: _completed,
    FailTask: _failed,
    RetryTask: _retrying,
    ResolveWait: _resolved,
    CancelTasks: _cancelled,
    Continued: _continued,
    SetPaused: _paused,
    BeginCompensation: _undoes,
    FinishRun: _finished,
}


def _step_failure(record: FailureRecord | None) -> Failure:
    return failure_from(record or _UNKNOWN, errors.StepFailed)
