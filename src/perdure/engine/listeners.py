"""Listeners: functions that hear of events, each at its own pace.

Each has its own queue, is called with one event at a time, in order, and never while whoever tells
waits for it. What it raises is logged. A listener that cannot follow loses the oldest events, and a
warning says so.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

_log = logging.getLogger("perdure.engine")

#: Events that wait for one listener before the oldest are dropped.
LONGEST_QUEUE: Final = 10_000

Listen = Callable[[Any], Awaitable[None] | None]
#: Runs as a task, which is kept until it ends.
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class Listener:
    """One function and what it has still to hear."""

    __slots__ = ("_busy", "_lost", "_queue", "_spawn", "call", "kind")

    def __init__(self, spawn: Spawn, kind: type[Any], call: Listen) -> None:
        self.kind = kind
        self.call = call
        self._spawn = spawn
        self._queue: deque[Any] = deque()
        self._busy: asyncio.Task[None] | None = None
        self._lost = 0

    def tell(self, event: Any) -> None:
        """Queue an event."""
        if len(self._queue) >= LONGEST_QUEUE:
            self._queue.popleft()
            self._lost += 1
        self._queue.append(event)
        if self._busy is None:
            self._busy = self._spawn(self._work())

    async def _work(self) -> None:
        try:
            while self._queue:
                if self._lost:
                    _log.warning("a listener to %s lost %d events", self._named(), self._lost)
                    self._lost = 0
                try:
                    answer = self.call(self._queue.popleft())
                    if inspect.isawaitable(answer):
                        await answer
                except Exception:
                    _log.exception("a listener to %s failed", self._named())
        finally:
            self._busy = None

    async def finish(self) -> None:
        """Return when everything so far was heard."""
        while self._busy is not None:
            await asyncio.wait([self._busy])

    def _named(self) -> str:
        return self.kind.__name__


class Listeners:
    """All that hear of one source of events."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self.each: list[Listener] = []

    def add(self, kind: type[Any], call: Listen) -> None:
        """Call with every event of this class from now on."""
        self.each.append(Listener(self._spawn, kind, call))

    def inherit(self, before: Listeners) -> None:
        """Whoever heard of others hears of these."""
        for listener in before.each:
            self.add(listener.kind, listener.call)

    def tell(self, event: Any) -> None:
        """Queue an event for those that want it."""
        for listener in self.each:
            if isinstance(event, listener.kind):
                listener.tell(event)

    async def close(self, seconds: float) -> None:
        """Let them hear what is left, for so long at most."""
        waiting = [asyncio.ensure_future(one.finish()) for one in self.each]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for task in late:
                task.cancel()
