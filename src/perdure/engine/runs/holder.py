"""Holder: what a run in memory, and whatever works on it, asks of the worker that holds it.

A worker is much more than that (`engine.worker`); this is all that is looked up from here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from perdure.engine.attempts.dispatcher import Dispatcher
    from perdure.engine.clock import Clock
    from perdure.engine.ids import Ids
    from perdure.engine.lane import Lane
    from perdure.engine.outages import Outages
    from perdure.engine.runs.births import Births
    from perdure.engine.runs.effects import Effects
    from perdure.engine.runs.live_run import LiveRun
    from perdure.engine.runs.observing import Observer
    from perdure.engine.runs.served import Served
    from perdure.engine.runs.shared_runner import SharedRunner
    from perdure.engine.runs.unwritten import Unwritten
    from perdure.engine.spawned import Spawned
    from perdure.kernel.actions import FinishRun
    from perdure.kernel.onward import Decided
    from perdure.kernel.protocol import Deps
    from perdure.stores.answers import Verdict
    from perdure.stores.port import Store
    from perdure.stores.rows import JournalRow
    from perdure.telemetry import Telemetry

#: The most runs that a worker has in memory.
MOST_LIVE: Final = 10_000


class Holder(Protocol):
    """A worker, as its runs see it."""

    # What all runs share.
    store: Store
    clock: Clock
    ids: Ids
    deps: Deps
    tasks: Spawned
    outages: Outages
    unwritten: Unwritten
    commits: Lane[JournalRow, Verdict]
    dispatcher: Dispatcher
    effects: Effects
    shared_runner: SharedRunner
    births: Births
    served: Served
    observers: list[Observer]
    telemetry: Telemetry | None

    # How the worker stands.
    #: Its id in the store.
    worker: str
    #: The next number of its tries: (worker, number) tells them apart for ever.
    next_commit: Callable[[], int]
    #: Nothing new begins.
    stopping: bool
    #: Declared dead, and not registered anew yet: it holds no run, and takes none.
    struck_off: bool
    #: When its lease may be over, by the monotonic clock: no effect starts then.
    lease_over: float
    #: Some attempt did not start since the lease seemed over.
    held_back: bool

    # What it holds.
    live: dict[bytes, LiveRun]
    #: Runs under its name that are on their way into or out of its memory.
    in_hand: set[bytes]
    #: Runs that are to end and whose code cannot go on, each with the reason: told when they are
    #: loaded again.
    given_up: dict[bytes, str]

    @property
    def may_claim(self) -> bool:
        """Whether it is alive, as far as it knows, and wants more runs."""

    def finished(self, live: LiveRun, action: FinishRun, /) -> None:
        """A run's end is durable."""

    def drop(self, live: LiveRun, /) -> None:
        """A run belongs to another worker now, or to none: forget it."""

    def left(self, live: LiveRun, verdict: Any, /) -> None:
        """The row by which a run is let go of was answered: it is held here no more."""

    def show(self, live: LiveRun, transition: Decided, /) -> None:
        """Tell the observers what became durable."""

    def ignored(self, live: LiveRun, event: Any, reason: str, /) -> None:
        """A local report changed nothing."""

    async def read(self, key: bytes, place: tuple[int, int], /) -> bytes:
        """A large value, tried again until the store gives it. Raises PayloadMissing."""
