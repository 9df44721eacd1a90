"""An event loop whose time jumps: when nothing is ready it goes straight to the next timer.

So a timeout of a minute or a retry in a day passes in no time, in the order it would in real life.
Threads are not in virtual time: give `patience`, how long a jump waits for one of them first.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

#: When virtual time begins, in µs since the epoch: 2027-01-15T08:00:00Z.
BEGIN = 1_800_000_000 * 1_000_000
#: Real seconds after which a loop with no timer and nothing ready is a deadlock.
DEADLOCK = 20.0


class Deadlock(BaseException):
    """Nothing is ready, no timer is set, and no thread has spoken: nothing can ever happen."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0 and moves only when nothing else is left to do."""

    def __init__(self, patience: float = 0.0) -> None:
        self._virtual = 0.0
        super().__init__(_Jumping(self, patience))
        # What is due within it counts as due; it must be seen beside centuries of seconds.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual

    def jump(self) -> None:
        """Go to the next timer."""
        self._virtual = max(self._virtual, self._scheduled[0].when())  # type: ignore[attr-defined]


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop, patience: float) -> None:
        super().__init__()
        self._loop = loop
        self._patience = patience

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            events = super().select(DEADLOCK)
            if not events:
                raise Deadlock("nothing is ready and no timer is set")
            return events
        if timeout <= 0:
            return super().select(0)
        events = super().select(self._patience)
        if not events:
            self._loop.jump()
        return events


class VirtualClock:
    """The engine's clock in virtual time (perdure.engine.clock.Clock). `skew` in µs.

    It corrects itself only if `corrects`: a store of another time (SQLite has the real one) must
    not drag it along.
    """

    def __init__(self, skew: int = 0, *, corrects: bool = False) -> None:
        self.skew = skew
        self.corrects = corrects

    def now(self) -> int:
        return BEGIN + round(asyncio.get_running_loop().time() * 1_000_000) + self.skew

    def correct(self, by: int) -> None:
        if self.corrects:
            self.skew += by

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def run(work: Coroutine[Any, Any, T], patience: float = 0.0) -> T:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience)) as runner:
        return runner.run(work)


async def settle() -> None:
    """Let everything happen that needs no time to pass."""
    for _ in range(50):
        await asyncio.sleep(0)
