"""HandClock: time that a test moves, on whatever event loop the test runs on.

Nothing here waits: whoever moves the clock has the timers looked at. Timeouts of attempts go by it
too; what a step really waits for (a socket, asyncio.sleep) does not.
"""

from __future__ import annotations

from perdure.engine.attempts.timeouts import Timeouts, Watch
from perdure.model.durations import SECOND
from perdure.testing.virtual import BEGIN


class HandClock:
    """The engine's clock (perdure.engine.clock.Clock). `begin` in µs since the epoch."""

    #: No timer looks at it by itself.
    longest_sleep = float("inf")

    def __init__(self, begin: int = BEGIN) -> None:
        self.begin = self._now = begin

    def now(self) -> int:
        """See Clock.now."""
        return self._now

    def monotonic(self) -> float:
        """See Clock.monotonic."""
        return (self._now - self.begin) / SECOND

    def correct(self, by: int) -> None:
        """Nobody's clock is more right than this one."""

    def move(self, to: int) -> None:
        """Go there; never back."""
        self._now = max(self._now, to)


class HandTimeouts(Timeouts):
    """Timeouts of attempts by a HandClock."""

    def __init__(self, clock: HandClock) -> None:
        super().__init__()
        self._clock = clock
        self._watched: dict[Watch, None] = {}

    def watch(self, watch: Watch, limit: int) -> None:
        """See Timeouts.watch. What waits for a thread does so in no time."""
        watch.deadline = self._clock.monotonic() + limit / SECOND
        watch.queue = self._watched
        self._watched[watch] = None

    def close(self) -> None:
        """See Timeouts.close."""
        self._watched.clear()

    @property
    def first(self) -> int | None:
        """When the first one is over, by the clock."""
        left = [watch.deadline for watch in self._watched if not watch.expired]
        if not left:
            return None
        return self._clock.now() + round((min(left) - self._clock.monotonic()) * SECOND)

    def look(self) -> None:
        """Tell attempts whose time is over, the one whose time was over first before the others."""
        now = self._clock.monotonic()
        for watch in sorted(self._watched, key=lambda one: one.deadline):
            if watch.deadline <= now and not watch.expired:
                watch.expired = True
                watch.on_expiry()
