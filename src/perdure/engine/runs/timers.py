"""Timers of one live run: by name, by the engine's clock, each disarmed by its name.

A run's timers are what its journal says is due: the end of a wait, a further attempt, its
deadline. Sleeps are bounded and the clock is looked at anew after each: a laptop that slept, or a
clock that was set, is noticed. Nothing here is durable; loading a run arms them again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from perdure.engine.clock import Clock
from perdure.model.durations import SECOND

#: The name of the run's deadline; the others are named after their nodes.
DEADLINE: Final = ""


class Timers:
    """`momentary` timers (`after`) are about this process, not about the run."""

    __slots__ = ("_armed", "_clock", "_momentary")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        #: In the order of their arming: when, what wakes it, what is called.
        self._armed: dict[str, tuple[int, asyncio.TimerHandle, Callable[[], None]]] = {}
        #: A dict, which is smaller than a set while it is empty.
        self._momentary: dict[asyncio.TimerHandle, None] = {}

    def arm(self, name: str, due: int, call: Callable[[], None]) -> None:
        """Call once the clock has reached `due` (µs since the epoch), in place of the timer of
        this name."""
        self.disarm(name)
        self._sleep(name, due, call)

    def disarm(self, name: str) -> None:
        """Forget the timer of this name, if there is one."""
        armed = self._armed.pop(name, None)
        if armed is not None:
            armed[1].cancel()

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call in so many seconds."""

        def fire() -> None:
            self._momentary.pop(handle, None)
            call()

        handle = asyncio.get_running_loop().call_later(seconds, fire)
        self._momentary[handle] = None

    def due(self, name: str) -> int | None:
        """When the timer of this name is due; None when there is none."""
        armed = self._armed.get(name)
        return None if armed is None else armed[0]

    @property
    def first(self) -> int | None:
        """When the first of them is due."""
        return min((entry[0] for entry in self._armed.values()), default=None)

    @property
    def momentary(self) -> bool:
        """Whether something of this process's own is still to be called."""
        return bool(self._momentary)

    def close(self) -> None:
        """Forget everything."""
        for _, handle, _ in self._armed.values():
            handle.cancel()
        for handle in self._momentary:
            handle.cancel()
        self._armed.clear()
        self._momentary.clear()

    def _sleep(self, name: str, due: int, call: Callable[[], None]) -> None:
        clock = self._clock
        seconds = min(max((due - clock.now()) / SECOND, 0.0), clock.longest_sleep)
        handle = asyncio.get_running_loop().call_later(seconds, self._look, name, due, call)
        self._armed[name] = (due, handle, call)

    def _look(self, name: str, due: int, call: Callable[[], None]) -> None:
        if self._clock.now() < due:
            self._sleep(name, due, call)
        else:
            self.look()

    def look(self) -> None:
        """Call all that are due, the earliest first, of one moment the one armed first."""
        now = self._clock.now()
        fired = [(entry[0], other) for other, entry in self._armed.items() if entry[0] <= now]
        for _, other in sorted(fired, key=lambda one: one[0]):
            entry = self._armed.pop(other, None)
            if entry is not None:
                entry[1].cancel()
                entry[2]()
