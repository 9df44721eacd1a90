"""Virtual time: an event loop whose time jumps. When nothing is ready it goes to the next timer.

So a timeout of a minute or a retry in a day passes in no time, in the order it would in real life.
Threads are not in virtual time: give `patience`, how long a jump waits for one of them first.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: When virtual time begins, in µs since the epoch: 2027-01-15T08:00:00Z.
BEGIN: Final = 1_800_000_000 * 1_000_000
#: Real seconds after which a loop with no timer and nothing ready is a deadlock.
DEADLOCK = 20.0


class Deadlock(BaseException):
    """Nothing is ready, no timer is set, and no thread has spoken: nothing can ever happen."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0 and moves only when nothing else is left to do.

    `before_jump`, when set, is called with the time of the next timer (None: there is none)
    before time moves there; time stays when it says True, having made something ready.
    """

    def __init__(self, patience: float = 0.0) -> None:
        self._virtual = 0.0
        self.before_jump: Callable[[float | None], bool] | None = None
        super().__init__(_Jumping(self, patience))
        # What is due within it counts as due; it must be seen beside centuries of seconds.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        """Seconds since the loop was made, in virtual time."""
        return self._virtual

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads, however long virtual time thinks that takes: from Python 3.12 on
        asyncio allows them five minutes, which would pass in no time."""
        await super().shutdown_default_executor()

    def jump(self) -> None:
        """Go to the next timer."""
        due: float = self._scheduled[0].when()  # type: ignore[attr-defined]
        if self.before_jump is None or not self.before_jump(due):
            self._virtual = max(self._virtual, due)


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop, patience: float) -> None:
        super().__init__()
        self._loop = loop
        self._patience = patience

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            ask = self._loop.before_jump
            if ask is not None and ask(None):
                return []
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
    """The engine's clock in virtual time (perdure.engine.clock.Clock). `skew` in µs; `begin`: the
    time at which the loop's is 0, in µs since the epoch.

    It corrects itself only if `corrects`: a store of another time (SQLite has the real one) must
    not drag it along.
    """

    def __init__(
        self,
        skew: int = 0,
        *,
        corrects: bool = False,
        begin: int = BEGIN,
        longest_sleep: float = 60.0,
    ) -> None:
        self.skew = skew
        self.corrects = corrects
        self.begin = begin
        self.longest_sleep = longest_sleep

    def now(self) -> int:
        """See Clock.now."""
        return self.begin + round(asyncio.get_running_loop().time() * 1_000_000) + self.skew

    def correct(self, by: int) -> None:
        """See Clock.correct."""
        if self.corrects:
            self.skew += by

    def monotonic(self) -> float:
        """See Clock.monotonic."""
        return asyncio.get_running_loop().time()


def run(work: Coroutine[Any, Any, T], patience: float = 0.0) -> T:
    """`asyncio.run` in virtual time."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(patience)) as runner:
        return runner.run(work)


async def settle() -> None:
    """Let everything happen that needs no time to pass."""
    for _ in range(50):
        await asyncio.sleep(0)
