"""Listeners: functions that hear of events, each at its own pace.

Each has its own queue, is called with one event at a time, in order, and never while whoever tells
waits for it. What it raises is logged. A listener that cannot follow loses the oldest events, and a
warning says so; so it does of one that has not returned in time when all else has ended.
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
#: Seconds for listeners to hear what is left when a client closes; of an engine, until its grace is
#: over, and this long at least.
CLOSING: Final = 5.0
AT_LEAST: Final = 1.0

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
                    _log.warning(
                        "a listener to %s lost %d events: %s",
                        self.kind.__name__, self._lost, self.name,
                    )  # fmt: skip
                    self._lost = 0
                try:
                    answer = self.call(self._queue.popleft())
                    if inspect.isawaitable(answer):
                        await answer
                except Exception:
                    _log.exception("a listener to %s failed: %s", self.kind.__name__, self.name)
        finally:
            self._busy = None

    async def finish(self) -> None:
        """Return when everything so far was heard."""
        while self._busy is not None:
            await asyncio.wait([self._busy])

    def left(self) -> int:
        """How many events it has not heard to the end."""
        return len(self._queue) + (self._busy is not None)

    @property
    def name(self) -> str:
        """Which function it is."""
        name = getattr(self.call, "__qualname__", None) or repr(self.call)
        return f"{getattr(self.call, '__module__', None) or ''}.{name}".lstrip(".")


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
        """Let them hear what is left, for so long at most; who has not heard all is named."""
        waiting = {asyncio.ensure_future(one.finish()): one for one in self.each}
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for task in late:
                task.cancel()
                one = waiting[task]
                _log.warning(
                    "a listener to %s has not returned, and is waited for no longer: %s; "
                    "%d event(s) were not heard to the end",
                    one.kind.__name__, one.name, one.left(),
                )  # fmt: skip
