"""LiveView: the runs of an engine while they happen, told from its feed. Nothing to configure.

    live = LiveView(engine)
    ...
    live.to_dicts()      # what a dashboard draws

Bounded: of more runs than the limit those are forgotten that ended, then those of which nothing was
heard for longest. Swept: one that ended is kept for a while, and one that nothing is heard of any
more (another process works on it now) is not kept for ever. Runs of which it did not see the start
are not shown: it would not know what they had done before. `Run.view` reads those from the store.
One that is retried after its end is told of anew, with how it stands, and shown again.

Whoever reads costs the engine next to nothing: it reads in its own thread, and what is told
meanwhile waits for it in a queue, and not the engine for the lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Lock
from typing import Any, Final, Protocol

import msgspec

from perdure.feed.events import RunEvent, WorkflowRetried, WorkflowStarted
from perdure.feed.hearing import begun, gone_on, hear
from perdure.feed.view import RunView
from perdure.model.duration_forms import Duration
from perdure.model.durations import SECOND, microseconds
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
        #: What was told and is not in the views yet.
        self._told: deque[RunEvent] = deque()
        #: Whoever asks may do so in another thread than the engine's, which never waits for it.
        self._lock = Lock()
        #: By workflow and id: what was heard of last stands last.
        self._runs: dict[tuple[str, str], _Heard] = {}
        #: The same, of those that ended.
        self._ended: dict[tuple[str, str], _Heard] = {}
        engine.listen(RunEvent)(self._hear)

    def runs(self) -> list[RunView]:
        """Copies of all that is known, the first begun first."""
        with self._up_to_date() as heard:
            return [one.view.copied() for one in heard]

    def get(self, workflow: str, run_id: str, /) -> RunView | None:
        """A copy of one; None where it is not known here."""
        name = (workflow, run_id)
        with self._up_to_date():
            heard = self._runs.get(name) or self._ended.get(name)
            return None if heard is None else heard.view.copied()

    def to_dicts(self) -> list[dict[str, Any]]:
        """All of them as JSON's types, see RunView.to_dict."""
        now = self._now()
        with self._up_to_date() as heard:
            return [one.view.to_dict(now) for one in heard]

    @contextmanager
    def _up_to_date(self) -> Iterator[list[_Heard]]:
        """All that is known, the first begun first, for as long as it is read."""
        with self._lock:
            self._catch_up()
            self._sweep(self._now())
            heard = [*self._ended.values(), *self._runs.values()]
            heard.sort(key=lambda one: one.number)
            yield heard

    # ------------------------------------------------------------------ hearing

    def _hear(self, event: RunEvent) -> None:
        """Called by the engine's loop: it leaves the event to whoever reads just now."""
        self._told.append(event)
        if self._lock.acquire(blocking=False):
            try:
                self._catch_up()
                self._sweep(event.time)
            finally:
                self._lock.release()

    def _catch_up(self) -> None:
        while self._told:
            self._take(self._told.popleft())

    def _take(self, event: RunEvent) -> None:
        name = (event.workflow, event.run_id)
        heard = self._runs.pop(name, None)
        if isinstance(event, WorkflowStarted):
            self._ended.pop(name, None)
            heard = _Heard(next(self._numbers), begun(event), event.time)
        elif isinstance(event, WorkflowRetried):
            heard = heard or self._ended.pop(name, None)
            number = next(self._numbers) if heard is None else heard.number
            view = gone_on(event, None if heard is None else heard.view)
            heard = _Heard(number, view, event.time)
        elif heard is None:
            return  # its start was not seen, or it has ended
        else:
            hear(heard.view, event)
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
