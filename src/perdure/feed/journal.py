"""Views told from journals: what any process can say of a run that others work on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from perdure.feed.view import RunView, trigger_of
from perdure.kernel.actions import (
    BeginCompensation,
    CancelTasks,
    CompensateTask,
    CompleteTask,
    Continued,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    OpenRun,
    ReopenRun,
    ResolveWait,
    RetryTask,
    SetPaused,
    StartChild,
)
from perdure.kernel.onward import Decided
from perdure.kernel.plan import UNDO
from perdure.model.errors import Canceled
from perdure.model.failure import FailureRecord
from perdure.model.moments import moment


def take(view: RunView, transitions: Iterable[Decided], plan: Sequence[str]) -> None:
    """Fold more of a journal into a view; `plan`: the names of the run's steps."""
    for transition in transitions:
        at = moment(transition.at)
        for action in transition.actions:
            fold = _FOLDS.get(type(action))
            if fold is not None:
                fold(view, action, at, plan)


def _opened(view: RunView, action: Any, at: datetime, plan: Sequence[str]) -> None:
    view.version, view.trigger = action.version, trigger_of(action.metadata)
    if view.started is None:
        view.started = at
    view.plan(plan)


def _continued(view: RunView, action: Continued, at: datetime, plan: Sequence[str]) -> None:
    _opened(view, action, at, plan)
    view.paused = action.paused  # the journal may begin with it


def _created(view: RunView, action: CreateTask, at: datetime, plan: Sequence[str]) -> None:
    if action.status == "waiting":
        view.waits(action.node, at)
    elif action.status == "skipped":
        view.skips(action.node)
    elif action.status == "completed":
        view.done(action.node, at)
    elif action.status == "pending":
        view.step(action.node)
    else:
        _fail(view, action.node, action.failure, at)


def _dispatched(view: RunView, action: DispatchTask, at: datetime, plan: Sequence[str]) -> None:
    due = _due(action.not_before, at)
    later = due > at or view.paused  # nobody tells when it begins
    view.begun(action.node, action.attempt + 1, at, due if later else None)


def _asked(view: RunView, action: StartChild, at: datetime, plan: Sequence[str]) -> None:
    view.begun(action.node, action.attempt + 1, at)


def _completed(view: RunView, action: CompleteTask, at: datetime, plan: Sequence[str]) -> None:
    view.done(action.node, at)


def _compensated(view: RunView, action: CompensateTask, at: datetime, plan: Sequence[str]) -> None:
    view.step(action.node + UNDO)
    view.done(action.node + UNDO, at)


def _failed(view: RunView, action: FailTask, at: datetime, plan: Sequence[str]) -> None:
    _fail(view, action.node, action.failure, at)


def _retried(view: RunView, action: RetryTask, at: datetime, plan: Sequence[str]) -> None:
    due = _due(action.not_before, at)
    view.retries(action.node, action.attempt + 2, action.failure.message, due)


def _resolved(view: RunView, action: ResolveWait, at: datetime, plan: Sequence[str]) -> None:
    if action.status == "completed":
        view.done(action.node, at)
    elif action.status == "canceled":
        view.fails(action.node, Canceled.kind, _said(action.failure), at)
    else:
        _fail(view, action.node, action.failure, at)


def _cancelled(view: RunView, action: CancelTasks, at: datetime, plan: Sequence[str]) -> None:
    for node in action.nodes:
        if action.status == "canceled":
            view.fails(node, Canceled.kind, action.failure.message, at)
        else:
            _fail(view, node, action.failure, at)


def _reopened(view: RunView, action: ReopenRun, at: datetime, plan: Sequence[str]) -> None:
    view.reopens(action.version, action.reset, plan)


def _undoes(view: RunView, action: BeginCompensation, at: datetime, plan: Sequence[str]) -> None:
    view.undoing = True


def _paused(view: RunView, action: SetPaused, at: datetime, plan: Sequence[str]) -> None:
    view.pauses(at) if action.paused else view.unpauses(at)


def _finished(view: RunView, action: FinishRun, at: datetime, plan: Sequence[str]) -> None:
    view.ends(action.status, at)


def _fail(view: RunView, node: str, failure: FailureRecord | None, at: datetime) -> None:
    view.fails(node, "" if failure is None else failure.kind, _said(failure), at)


def _due(not_before: int, at: datetime) -> datetime:
    try:
        return max(moment(not_before), at)
    except OverflowError:  # thousands of years from now: no calendar has it
        return datetime.max.replace(tzinfo=UTC)


def _said(failure: FailureRecord | None) -> str:
    return "" if failure is None else failure.message


_FOLDS: Final[Mapping[type, Callable[[RunView, Any, datetime, Sequence[str]], None]]] = {
    OpenRun: _opened,
    Continued: _continued,
    CreateTask: _created,
    DispatchTask: _dispatched,
    StartChild: _asked,
    CompleteTask: _completed,
    CompensateTask: _compensated,
    FailTask: _failed,
    RetryTask: _retried,
    ResolveWait: _resolved,
    CancelTasks: _cancelled,
    ReopenRun: _reopened,
    BeginCompensation: _undoes,
    SetPaused: _paused,
    FinishRun: _finished,
}
