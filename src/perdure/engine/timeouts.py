"""Timeouts of attempts, kept in one heap and looked at by one timer.

An attempt that ends before it ever waits is never entered; one that ends in time is only marked,
and marks are swept out once they outnumber the live ones: a timer per attempt would cost more
than most steps.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable


class Watch:
    """One attempt's deadline. `expired` is set just before `on_expiry` is called. `left`: asked
    then how many seconds it still has, where its time may have begun later."""

    __slots__ = ("deadline", "expired", "left", "on_expiry", "over", "seconds")

    def __init__(
        self,
        seconds: float,
        now: float,
        on_expiry: Callable[[], None],
        left: Callable[[], float] | None = None,
    ) -> None:
        self.seconds = seconds
        self.left = left
        self.deadline = now + seconds
        self.on_expiry = on_expiry
        self.expired = False
        self.over = False


class Timeouts:
    """Call `watch` when an attempt begins to wait and `done` when it ended."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Watch]] = []
        self._count = 0
        self._over = 0
        self._timer: asyncio.TimerHandle | None = None

    def watch(
        self,
        seconds: float,
        on_expiry: Callable[[], None],
        left: Callable[[], float] | None = None,
    ) -> Watch:
        """Call `on_expiry` on the loop unless `done` comes within `seconds`, or as many more as
        there are `left` then."""
        loop = asyncio.get_running_loop()
        watch = Watch(seconds, loop.time(), on_expiry, left)
        self._enter(watch)
        if self._timer is None or watch.deadline < self._timer.when():
            self._arm(loop)
        return watch

    def _enter(self, watch: Watch) -> None:
        self._count += 1
        heapq.heappush(self._heap, (watch.deadline, self._count, watch))

    def done(self, watch: Watch) -> None:
        """The attempt ended; its deadline means nothing any more."""
        watch.over = True
        self._over += 1
        if self._over > 256 and self._over * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].over]
            heapq.heapify(self._heap)
            self._over = 0

    def close(self) -> None:
        """Forget everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._heap[0][0], self._look) if self._heap else None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        now = loop.time()
        while self._heap and (self._heap[0][2].over or self._heap[0][0] <= now):
            watch = heapq.heappop(self._heap)[2]
            if watch.over:
                self._over -= 1
            elif watch.left is not None and (more := watch.left()) > 0:
                watch.deadline = now + more
                self._enter(watch)
            else:
                watch.expired = True
                watch.on_expiry()
        self._arm(loop)
