"""LiveView: the runs of an engine while they happen, told from its feed. Nothing to configure.

    live = LiveView(engine)
    ...
    live.to_dicts()      # what a dashboard draws

Bounded: of more runs than the limit those are forgotten that ended, then those of which nothing was
heard for longest. Swept: one that ended is kept for a while, and one that nothing is heard of any
more (another process works on it now) is not kept for ever. Runs of which it did not see the start
are not shown: it would not know what they had done before. `Run.view` reads those from the store.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Lock
from typing import Any, Final, Protocol

import msgspec

from perdure.feed.events import (
    RunEvent,
    WaitEnded,
    WaitStarted,
    WorkflowCanceled,
    WorkflowCompensationCompleted,
    WorkflowCompensationStarted,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowPaused,
    WorkflowStarted,
    WorkflowStepCompleted,
    WorkflowStepFailed,
    WorkflowStepRetrying,
    WorkflowStepSkipped,
    WorkflowStepStarted,
    WorkflowUnpaused,
)
from perdure.feed.view import RunView
from perdure.model.durations import SECOND, Duration, microseconds
from perdure.model.errors import InvalidOptions

#: Defaults.
LIMIT: Final = 1000
KEEP: Final = "1m"
QUIET: Final = "1d"


def _now() -> datetime:
    return datetime.now(UTC)


class Feeding(Protocol):
    """An engine, as far as it tells."""

    def listen(self, event: type[RunEvent], /) -> Callable[[Callable[[RunEvent], None]], Any]:
        """See Engine.listen."""


class LiveView:
    """The runs that the engine begins from now on; may be asked in any thread. `limit`: how many
    are kept at most. `keep`: for how long one that ended is; `quiet`: for how long one is that
    nothing is heard of. Raises InvalidOptions for a limit under 1."""

    def __init__(
        self,
        engine: Feeding,
        /,
        *,
        limit: int = LIMIT,
        keep: Duration = KEEP,
        quiet: Duration = QUIET,
        now: Callable[[], datetime] = _now,
    ) -> None:
        if limit < 1:
            raise InvalidOptions(f"limit={limit}: a live view keeps at least 1 run")
        self._limit = limit
        self._keep = timedelta(seconds=microseconds(keep, "keep") / SECOND)
        self._quiet = timedelta(seconds=microseconds(quiet, "quiet") / SECOND)
        self._now = now
        self._numbers = count(1)
        #: Whoever asks may do so in another thread than the engine's.
        self._lock = Lock()
        #: By workflow and id: what was heard of last stands last.
        self._runs: dict[tuple[str, str], _Heard] = {}
        #: The same, of those that ended.
        self._ended: dict[tuple[str, str], _Heard] = {}
        engine.listen(RunEvent)(self._hear)

    def runs(self) -> list[RunView]:
        """Copies of all that is known, the first begun first."""
        with self._lock:
            self._sweep(self._now())
            heard = [*self._ended.values(), *self._runs.values()]
            heard.sort(key=lambda one: one.number)
            return [deepcopy(one.view) for one in heard]

    def get(self, workflow: str, run_id: str, /) -> RunView | None:
        """A copy of one; None where it is not known here."""
        with self._lock:
            self._sweep(self._now())
            name = (workflow, run_id)
            heard = self._runs.get(name) or self._ended.get(name)
            return None if heard is None else deepcopy(heard.view)

    def to_dicts(self) -> list[dict[str, Any]]:
        """All of them as JSON's types, see RunView.to_dict."""
        now = self._now()
        return [view.to_dict(now) for view in self.runs()]

    # ------------------------------------------------------------------ hearing

    def _hear(self, event: RunEvent) -> None:
        with self._lock:
            self._take(event)
            self._sweep(event.time)

    def _take(self, event: RunEvent) -> None:
        name = (event.workflow, event.run_id)
        if isinstance(event, WorkflowStarted):
            self._ended.pop(name, None)
            self._runs[name] = _Heard(next(self._numbers), _begun(event), event.time)
        else:
            heard = self._runs.pop(name, None)
            if heard is None:
                return  # its start was not seen, or it has ended
            told = _TELLINGS.get(type(event))
            if told is not None:
                told(heard.view, event)
            elif isinstance(event, WorkflowFinished):
                heard.view.ends(_OUTCOMES.get(type(event), "failed"), event.time)
            heard.last = event.time
            of = self._ended if heard.view.outcome else self._runs
            of[name] = heard

    def _sweep(self, now: datetime) -> None:
        _drop_older(self._ended, now, self._keep)
        _drop_older(self._runs, now, self._quiet)
        while len(self._runs) + len(self._ended) > self._limit:
            of = self._ended or self._runs
            del of[next(iter(of))]


class _Heard(msgspec.Struct):
    """A run, the how manieth, and when something was heard of it last."""

    number: int
    view: RunView
    last: datetime


def _drop_older(runs: dict[tuple[str, str], _Heard], now: datetime, age: timedelta) -> None:
    while runs:
        name = next(iter(runs))
        if now - runs[name].last <= age:
            break
        del runs[name]


def _begun(event: WorkflowStarted) -> RunView:
    view = RunView(event.workflow, event.run_id, event.trigger, event.version, started=event.time)
    view.plan(event.steps)
    return view


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
    view.unpauses()


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
