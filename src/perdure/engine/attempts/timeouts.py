"""Timeouts of attempts, looked at by one timer.

Attempts with the same limit are over in the order in which they began to wait, and most have one
of a few limits: each limit has a queue, and a heap says which queue is to be looked at next. An
attempt that ends before it ever waits is never entered, and one that ends in time is taken out at
once: a timer per attempt would cost more than most steps.
"""

from __future__ import annotations

import asyncio
import heapq
from typing import Final, Protocol

from perdure.model.durations import SECOND

#: How many queues there may be before those are swept out in which nobody is any more.
QUEUES: Final = 256


class Watch(Protocol):
    """Who is told when its time is over. `deadline`, by the loop's clock, is set when it is
    entered, and `expired` just before `on_expiry` is called."""

    deadline: float
    #: Where it stands, with others: taken out of there, it is told nothing.
    queue: dict[Watch, None] | None
    expired: bool

    def on_expiry(self) -> None:
        """Its time is over."""

    def left(self) -> float:
        """Asked then how many seconds it still has, where its time may have begun later."""


class Timeouts:
    """Call `watch` when an attempt begins to wait; one that ended is taken out of its `queue`."""

    def __init__(self) -> None:
        #: Of each limit those that have it, by their deadlines.
        self._queues: dict[int, dict[Watch, None]] = {}
        #: For each queue when it is to be looked at: not after its first deadline.
        self._heap: list[tuple[float, int]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._most = QUEUES

    def watch(self, watch: Watch, limit: int) -> None:
        """Call `on_expiry` on the loop in so many µs, or in as many more as there are `left`
        then."""
        loop = asyncio.get_running_loop()
        watch.deadline = loop.time() + limit / SECOND
        queue = self._queues.get(limit)
        if queue is None:
            queue = self._begin(limit, watch.deadline, loop)
        queue[watch] = None
        watch.queue = queue

    def _begin(
        self, limit: int, first: float, loop: asyncio.AbstractEventLoop
    ) -> dict[Watch, None]:
        if len(self._queues) >= self._most:
            self._sweep()
        queue = self._queues[limit] = {}
        heapq.heappush(self._heap, (first, limit))
        if self._timer is None or first < self._timer.when():
            self._arm(loop)
        return queue

    def close(self) -> None:
        """Forget everything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._heap.clear()
        self._queues.clear()

    def _sweep(self) -> None:
        self._queues = {limit: queue for limit, queue in self._queues.items() if queue}
        self._heap = [(next(iter(queue)).deadline, limit) for limit, queue in self._queues.items()]
        heapq.heapify(self._heap)
        self._most = max(QUEUES, 2 * len(self._queues))

    def _arm(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._heap[0][0], self._look) if self._heap else None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = None
        for watch in self._due(loop.time()):
            if watch.queue is None or watch not in watch.queue:
                continue  # what was told before this has ended it
            del watch.queue[watch]
            if (more := watch.left()) > 0:
                self.watch(watch, max(round(more * SECOND), 1))
            else:
                watch.expired = True
                watch.on_expiry()
        self._arm(loop)

    def _due(self, now: float) -> list[Watch]:
        """Those whose time is over, first the one for whom it was first."""
        due: list[Watch] = []
        while self._heap and self._heap[0][0] <= now:
            limit = heapq.heappop(self._heap)[1]
            for watch in self._queues[limit]:
                if watch.deadline > now:
                    heapq.heappush(self._heap, (watch.deadline, limit))
                    break
                due.append(watch)
            else:
                del self._queues[limit]  # when they are told there is nobody in it any more
        return sorted(due, key=lambda watch: watch.deadline)
