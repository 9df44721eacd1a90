"""Hearing: what each event of the feed says of how its run stands, as the verbs of its view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from perdure.feed.events import (
    RunEvent,
    WaitEnded,
    WaitStarted,
    WorkflowCanceled,
    WorkflowCompensationCompleted,
    WorkflowCompensationStarted,
    WorkflowCompleted,
    WorkflowContinued,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowPaused,
    WorkflowRetried,
    WorkflowStarted,
    WorkflowStepCompleted,
    WorkflowStepFailed,
    WorkflowStepRetrying,
    WorkflowStepSkipped,
    WorkflowStepStarted,
    WorkflowUnpaused,
)
from perdure.feed.view import RUNNING, WAITING, RunView, StepView


def begun(event: WorkflowStarted) -> RunView:
    """The view of a run that begins."""
    view = RunView(event.workflow, event.run_id, event.trigger, event.version, started=event.time)
    view.plan(event.steps)
    return view


def gone_on(event: WorkflowRetried, view: RunView | None) -> RunView:
    """The view of a run that ended and goes on, from the one that was kept of it, if one was."""
    if view is None:
        view = RunView(event.workflow, event.run_id, event.trigger, started=event.time)
    again = [name for name in view.steps if name not in event.standing]
    view.reopens(event.version, again, event.steps)
    for name, state in event.standing.items():
        step = view.step(name)
        if state == WAITING:
            view.waits(name, event.time)
        elif state == RUNNING:
            view.begun(name, 1, event.time)
        elif step.state != state:
            view.steps[name] = StepView(name, state)
    return view


def hear(view: RunView, event: RunEvent) -> None:
    """Take an event of a run that goes on into its view."""
    told = _TELLINGS.get(type(event))
    if told is not None:
        told(view, event)
    elif isinstance(event, WorkflowFinished):
        view.ends(_OUTCOMES.get(type(event), "failed"), event.time)


def _started(view: RunView, event: WorkflowStepStarted) -> None:
    view.begun(event.step, event.attempt, event.time)


def _completed(view: RunView, event: WorkflowStepCompleted) -> None:
    view.done(event.step, event.time)


def _retrying(view: RunView, event: WorkflowStepRetrying) -> None:
    view.retries(event.step, event.attempt + 1, event.failure.message, None)


def _failed(view: RunView, event: WorkflowStepFailed) -> None:
    view.fails(event.step, event.failure.kind, event.failure.message, event.time)


def _skipped(view: RunView, event: WorkflowStepSkipped) -> None:
    view.skips(event.step)


def _waits(view: RunView, event: WaitStarted) -> None:
    view.waits(event.step, event.time)


def _waited(view: RunView, event: WaitEnded) -> None:
    if event.failure is None:
        view.done(event.step, event.time)
    else:
        view.fails(event.step, event.failure.kind, event.failure.message, event.time)


def _paused(view: RunView, event: RunEvent) -> None:
    view.pauses(event.time)


def _unpaused(view: RunView, event: RunEvent) -> None:
    view.unpauses(event.time)


def _continued(view: RunView, event: WorkflowContinued) -> None:
    view.version = event.version
    view.plan(())


def _undoing(view: RunView, event: RunEvent) -> None:
    view.undoing = True


def _undone(view: RunView, event: RunEvent) -> None:
    view.undoing = False


_TELLINGS: Final[dict[type, Callable[[RunView, Any], None]]] = {
    WorkflowStepStarted: _started,
    WorkflowStepCompleted: _completed,
    WorkflowStepRetrying: _retrying,
    WorkflowStepFailed: _failed,
    WorkflowStepSkipped: _skipped,
    WaitStarted: _waits,
    WaitEnded: _waited,
    WorkflowContinued: _continued,
    WorkflowPaused: _paused,
    WorkflowUnpaused: _unpaused,
    WorkflowCompensationStarted: _undoing,
    WorkflowCompensationCompleted: _undone,
}
_OUTCOMES: Final[dict[type, str]] = {
    WorkflowCompleted: "completed",
    WorkflowFailed: "failed",
    WorkflowCanceled: "canceled",
}
