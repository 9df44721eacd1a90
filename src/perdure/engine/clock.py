"""The clock the engine lives by, behind a port so that tests can turn it by hand."""

from __future__ import annotations

import time
from time import time_ns
from typing import Final, Protocol


class Clock(Protocol):
    """Times in µs. `now` since the epoch; `monotonic` only ever grows."""

    def now(self) -> int:
        """The store's time, as well as this process knows it."""

    def monotonic(self) -> float:
        """Seconds, for measuring how long something took."""

    def correct(self, by: int) -> None:
        """The store's clock was seen to be so much ahead (negative: behind)."""

    @property
    def longest_sleep(self) -> float:
        """After so many seconds at most a timer looks at the clock again: it may have been set."""


class SystemClock:
    """The machine's clock, corrected by what the store's clock was seen to differ."""

    __slots__ = ("offset",)

    longest_sleep: Final = 60.0

    def __init__(self, offset: int = 0) -> None:
        self.offset = offset

    def now(self) -> int:
        """See Clock.now."""
        return time_ns() // 1000 + self.offset

    def monotonic(self) -> float:
        """See Clock.monotonic."""
        return time.monotonic()

    def correct(self, by: int) -> None:
        """See Clock.correct."""
        self.offset += by


def error_of(before: int, seen: int, after: int) -> int:
    """How much a clock is behind another that showed `seen` at some moment between the two of
    its own times: nothing when that lies between them, so that a slow answer moves no clock."""
    if seen < before:
        return seen - before
    return max(seen - after, 0)
