"""Queued: an attempt of a `def` step that may have to wait for a thread.

Its time begins with its turn: one that has waited for a thread for as long as it may take has done
nothing yet. What it is asked meanwhile it is asked by two threads, so nothing here reads a clock
that belongs to one of them.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any

from perdure.model.durations import SECOND


class Queued:
    """`now`: the engine's time at which it began to wait, in µs."""

    __slots__ = ("_begun", "_loop", "_now", "_since", "never", "running")

    def __init__(self, now: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._since = self._loop.time()
        self._now = now
        self._begun: float | None = None
        #: The call on its thread, from when it is ordered.
        self.running: Future[Any] | None = None
        #: It was taken back before its turn came.
        self.never = False

    def begins(self) -> None:
        """Its turn has come. (In its thread.)"""
        self._begun = self._loop.time()

    def left(self, limit: int) -> float:
        """Seconds that it still has of `limit` µs: all while it waits."""
        seconds = limit / SECOND
        return seconds if self._begun is None else self._begun + seconds - self._loop.time()

    def deadline(self, limit: int) -> int | None:
        """When its time is over, in µs since the epoch; None while it waits."""
        if self._begun is None:
            return None
        return self._now + round((self._begun - self._since) * SECOND) + limit

    def take_back(self) -> bool:
        """Whether it waited, and will not begin any more."""
        if self.running is not None and self.running.cancel():
            self.never = True
        return self.never
