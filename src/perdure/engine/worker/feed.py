"""Publishing the feed: from what became durable to events, and from events to listeners.

An Observer like any other: with no listener it is not there and costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from perdure.codec.failures import failure_from
from perdure.engine.worker.listeners import Listen, Listeners
from perdure.engine.worker.records import Records
from perdure.feed import (
    ReportIgnored,
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
    WorkflowRetried,
    WorkflowStarted,
    WorkflowStepCompleted,
    WorkflowStepFailed,
    WorkflowStepRetrying,
    WorkflowStepSkipped,
    WorkflowStepStarted,
    WorkflowTimedOut,
    WorkflowUnpaused,
)
from perdure.feed.record import WorkflowRecord
from perdure.feed.view import DONE, RUNNING, trigger_of
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
from perdure.kernel.onward import Decided
from perdure.kernel.plan import UNDO
from perdure.kernel.run import COMPENSATING, GRACE
from perdure.model import errors
from perdure.model.errors import Failure, RunFailed
from perdure.model.failure import FailureRecord
from perdure.model.moments import moment

if TYPE_CHECKING:
    from perdure.engine.attempts.orders import Order
    from perdure.engine.runs.live_run import LiveRun
    from perdure.engine.worker.shell import Shell
    from perdure.kernel.run import NodeState, Run

_UNKNOWN: Final = FailureRecord("unknown", "no reason was recorded")


class Feed:
    """The listeners of one engine."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._listeners = Listeners(shell.spawn)
        self.records = Records(shell, self._listeners)

    def listen(self, kind: type[Any], call: Listen) -> None:
        """Call with every event of this class from now on."""
        self._listeners.add(kind, call)
        if issubclass(WorkflowRecord, kind):
            self.records.wanted = True
            return
        if self not in self._shell.observers:
            self._shell.observers.append(self)
            self._shell.on_ignored = self.ignored
        if issubclass(WorkflowStepStarted, kind):
            self._shell.dispatcher.on_started = self.started

    async def close(self, seconds: float) -> None:
        """Let the listeners hear what is left, for so long at most, records included."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        await self.records.close(seconds)
        await self._listeners.close(max(until - loop.time(), 0))

    # ------------------------------------------------------------------ what happens

    def entered(self, live: LiveRun, run: Run) -> None:
        """See Observer.entered."""
        if live.seq == 1:
            at = time_of(run.at)
            definition = live.definition
            self._publish(
                WorkflowStarted, live, time=at, version=definition.version,
                steps=definition.planned, trigger=trigger_of(run.metadata),
            )  # fmt: skip

    def retried(self, live: LiveRun, run: Run) -> None:
        """A run that had ended came into memory, and nothing happened to it since its retry."""
        definition = live.definition
        standing = {
            node: state
            for node, of in run.nodes.items()
            if node != GRACE and (state := _standing(of)) is not None
        }
        self._publish(
            WorkflowRetried, live, time=time_of(run.at), version=definition.version,
            steps=definition.planned, trigger=trigger_of(run.metadata), standing=standing,
        )  # fmt: skip

    def recorded(self, live: LiveRun, transition: Decided) -> None:
        """See Observer.recorded."""
        at = time_of(transition.at)
        for action in transition.actions:
            make = _EVENTS.get(type(action))
            if make is not None:
                for kind, fields in make(live, action):
                    self._publish(kind, live, time=at, **fields)

    def started(self, order: Order) -> None:
        """An attempt begins."""
        at = time_of(self._shell.clock.now())
        self._listeners.tell(
            WorkflowStepStarted(
                workflow=order.workflow, run_id=order.run_id, time=at, step=order.node,
                attempt=order.number + 1,
            )
        )  # fmt: skip

    def ignored(self, live: LiveRun, event: Any, reason: str) -> None:
        """A report counted for nothing."""
        attempt = getattr(event, "attempt", None)
        if attempt is not None:
            at = time_of(self._shell.clock.now())
            self._publish(
                ReportIgnored, live, time=at, step=event.node, attempt=attempt + 1,
                reason=reason,
            )  # fmt: skip

    def _publish(self, kind: type[Any], live: LiveRun, **fields: Any) -> None:
        self._listeners.tell(kind(workflow=live.definition.name, run_id=live.run_id, **fields))


Told = Iterator[tuple[type[Any], dict[str, Any]]]


def _created(live: LiveRun, action: CreateTask) -> Told:
    step = {"step": action.node}
    if action.status == "skipped":
        yield WorkflowStepSkipped, step
    elif action.status == "failed":
        yield WorkflowStepFailed, {**step, "attempt": 0, "failure": _step_failure(action.failure)}
    elif action.status == "completed":
        yield WorkflowStepCompleted, {**step, "attempt": 0}
    elif action.status == "waiting":
        until = None if action.wake_at is None else time_of(action.wake_at)
        yield WaitStarted, {**step, "signal": action.awaited_signal, "until": until}


def _asked(live: LiveRun, action: StartChild) -> Told:
    yield WorkflowStepStarted, {"step": action.node, "attempt": action.attempt + 1}


def _completed(live: LiveRun, action: CompleteTask) -> Told:
    yield WorkflowStepCompleted, {"step": action.node, "attempt": action.attempt + 1}


def _failed(live: LiveRun, action: FailTask) -> Told:
    failure = _step_failure(action.failure)
    yield (
        WorkflowStepFailed,
        {"step": action.node, "attempt": action.attempt + 1, "failure": failure},
    )
    if action.node.endswith(UNDO):
        step = action.node.removesuffix(UNDO)
        yield WorkflowCompensationFailed, {"step": step, "failure": failure}


def _retrying(live: LiveRun, action: RetryTask) -> Told:
    yield (
        WorkflowStepRetrying,
        {
            "step": action.node,
            "attempt": action.attempt + 1,
            "failure": _step_failure(action.failure),
            "next_attempt": time_of(action.not_before),
        },
    )


def _resolved(live: LiveRun, action: ResolveWait) -> Told:
    ok = action.status == "completed"
    failure = None if ok else _step_failure(action.failure)
    yield WaitEnded, {"step": action.node, "failure": failure}


def _cancelled(live: LiveRun, action: CancelTasks) -> Told:
    for node in action.nodes:
        failure = _step_failure(action.failure)
        yield WorkflowStepFailed, {"step": node, "attempt": 0, "failure": failure}


def _continued(live: LiveRun, action: Continued) -> Told:
    yield WorkflowContinued, {"version": action.version}


def _paused(live: LiveRun, action: SetPaused) -> Told:
    yield (WorkflowPaused if action.paused else WorkflowUnpaused), {}


def _undoes(live: LiveRun, action: BeginCompensation) -> Told:
    failure = failure_from(action.failure, RunFailed)
    machine = live.machine
    steps = to_undo(machine.plan, live.run) if isinstance(machine, GraphMachine) else ()
    yield (
        WorkflowCompensationStarted,
        {"reason": action.reason, "failure": failure, "steps": steps},
    )


def _finished(live: LiveRun, action: FinishRun) -> Told:
    record = action.failure or _UNKNOWN
    if live.run.phase == COMPENSATING and isinstance(record.details, dict):
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
        kind = WorkflowTimedOut if _reached_deadline(live, record, step) else WorkflowFailed
        yield kind, {"step": step, "failure": failure_from(record, RunFailed)}


def _standing(node: NodeState) -> str | None:
    """The state of a step that is not about to begin."""
    if node.status == "pending":
        return RUNNING if node.child is not None else None
    return DONE if node.status == "completed" else node.status


def _reached_deadline(live: LiveRun, record: FailureRecord, step: str) -> bool:
    """Whether the run failed by its deadline, and not by something else that took too long. One
    that never began is told of a deadline by its end alone."""
    deadline, stopping = live.run.deadline, live.run.stopping
    if record.kind != errors.TimedOut.kind or step:
        return False
    stopped = stopping is not None and stopping.kind == errors.TimedOut.kind
    return stopped or (deadline is not None and live.run.at >= deadline)


_EVENTS: Final[dict[type, Callable[[LiveRun, Any], Told]]] = {
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


def time_of(microseconds: int) -> datetime:
    """An aware UTC datetime of a recorded time."""
    return moment(microseconds)
