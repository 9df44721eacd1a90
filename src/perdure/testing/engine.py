"""TestEngine: an engine whose time a test moves, on a store of its own, with steps faked.

It is the real engine, on the event loop of the test: runs go on as soon as the loop turns, and
stand still where they wait for time until `advance`. So a wait of three days takes no time, and its
end comes when the test says so and not before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Self, TypeVar, overload

from msgspec import UNSET

from perdure.client.engine import Engine
from perdure.codec.values import JsonCodec
from perdure.drivers.native import NativeDriver
from perdure.engine.attempts.secrets import Secrets
from perdure.engine.handlers.http import HttpOptions
from perdure.engine.handlers.task import TaskHandler
from perdure.engine.runs.coding import close
from perdure.flow.codec import Codec, TypedCodec
from perdure.flow.registry import Listed, Registry
from perdure.flow.step import Step
from perdure.model.driving import Outcome
from perdure.model.duration_forms import Duration
from perdure.model.durations import microseconds
from perdure.model.moments import moment
from perdure.model.names import check_run_id
from perdure.testing.fakes import Fake, FakedTasks, answer_of
from perdure.testing.hand_clock import HandClock, HandTimeouts
from perdure.testing.mocks import _now
from perdure.testing.stage import OwnStore

R = TypeVar("R")

#: Turns of the loop in which nothing happens, after which nothing is expected to happen.
QUIET: Final = 20
#: Real seconds that steps which really take time are waited for.
PATIENCE: Final = 0.5
#: Real seconds after which a result that only time would bring is not waited for any more.
STILL: Final = 2.0
#: Longer than any test: nobody polls, nothing is parked.
_EVER: Final = 10**9


class TestEngine(Engine):
    """`async with TestEngine([sign_up]) as engine: …`, or the fixture `perdure_engine`.

    definitions: as of Engine; graphs need their steps beside them, workflows that are started or
    asked for need not be listed. now: when it begins, an aware datetime or text of one. Opens at
    its first use where it was not entered.
    """

    __test__ = False
    _alone = True

    def __init__(
        self,
        definitions: Iterable[Listed] = (),
        /,
        *,
        now: str | datetime | None = None,
        resources: Iterable[object] = (),
        secrets: Mapping[str, str] | Callable[[str], str | None] | Secrets | None = None,
        http: HttpOptions | None = None,
        threads: int | None = None,
        codec: Codec | None = None,
    ) -> None:
        clock = HandClock(_now(now, "TestEngine"))
        self._begin(clock, OwnStore(clock), definitions, resources, secrets, http, threads, codec)

    def _begin(
        self,
        clock: HandClock,
        store: Any,
        definitions: Iterable[Listed],
        resources: Iterable[object] = (),
        secrets: Any = None,
        http: HttpOptions | None = None,
        threads: int | None = None,
        codec: Codec | None = None,
    ) -> None:
        self._hand = clock
        self._own = store
        plain = JsonCodec() if codec is None else TypedCodec(codec)
        driver = _Opening(store, clock, plain, self)
        Engine.__init__(
            self, driver, definitions, resources=resources, secrets=secrets, http=http,
            threads=threads, grace=0, poll=_EVER, park_after=_EVER, codec=codec,
        )  # fmt: skip
        self._clock = clock  # type: ignore[assignment]
        shell = self._shell
        shell.served.adopts = True
        self._timeouts = shell.timeouts = shell.dispatcher._timeouts = HandTimeouts(clock)
        self._entered = False

    def _tasks(self, registry: Registry, threads: int | None) -> TaskHandler:
        self._faked = FakedTasks(registry.steps, threads)
        return self._faked

    # ------------------------------------------------------------------ steps

    @overload
    def fake(self, step: Step[..., R], /, *, returns: R) -> Fake[R]: ...
    @overload
    def fake(
        self, step: Step[..., R], /, *, raises: BaseException | Sequence[BaseException]
    ) -> Fake[R]: ...
    @overload
    def fake(self, step: Step[..., R], fn: Callable[..., R | Awaitable[R]], /) -> Fake[R]: ...
    def fake(
        self,
        step: Step[..., R],
        fn: Callable[..., Any] | None = None,
        /,
        *,
        returns: Any = UNSET,
        raises: BaseException | Sequence[BaseException] | None = None,
    ) -> Fake[R]:
        """Let the step answer so from now on, in every run: with a value, by raising (of a list,
        the first attempt that is made raises the first, and so on, the last one again and again),
        or by a function that is called with the arguments, a `def` or an `async def`. What is given
        back has its `calls`. A step that is not faked does what it does."""
        return self._faked.fake(step, answer_of(returns, raises, fn))

    # ------------------------------------------------------------------ time

    def now(self) -> datetime:
        """The time (aware, UTC), as workflows see it."""
        return moment(self._hand.now())

    async def advance(self, by: Duration, /) -> None:
        """Let so much time pass: whatever becomes due happens in order, each at its own time, and
        all that follows from it before the next."""
        await self._opened()
        await self._until(self._hand.now() + microseconds(by, "by"))

    async def settle(self) -> None:
        """Let everything happen that needs no time. Steps that really take some (a `def` in its
        thread) are waited for, half a second at most."""
        await self._opened()
        quiet = 0
        while quiet < QUIET:
            before = self._pulse()
            await asyncio.sleep(0)
            quiet = quiet + 1 if self._pulse() == before else 0
            if quiet == QUIET and await self._something_ended():
                quiet = 0

    async def _until(self, end: int) -> None:
        await self.settle()
        while (due := self._next_due()) is not None and due <= end:
            await self._move(due)
        await self._move(end)

    async def _move(self, to: int) -> None:
        self._hand.move(to)
        self._timeouts.look()
        for live in list(self._shell.live.values()):
            if not live.dead:
                live.timers.look()
        await self._shell.claims.take_all()
        await self.settle()

    def _next_due(self) -> int | None:
        """When something happens next by itself."""
        dues = [live.timers.first for live in self._shell.live.values()]
        dues += [self._timeouts.first, self._own.next_start(self._hand.now())]
        return min((due for due in dues if due is not None), default=None)

    def _pulse(self) -> tuple[Any, ...]:
        shell = self._shell
        rows = sum(live.seq for live in shell.live.values())
        return (self._faked.pulse, rows, len(shell.live), len(shell.tasks))

    async def _something_ended(self) -> bool:
        """Wait for attempts that are under way; whether one of them ended."""
        runners = [task for live in self._shell.live.values() for task in live.runners]
        if not runners:
            return False
        done, _ = await asyncio.wait(runners, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)

    # ------------------------------------------------------------------ life

    async def __aenter__(self) -> Self:
        await self._opened()
        return self

    async def _opened(self) -> None:
        if not self._entered:
            self._entered = True
            await self._driver.open()
            await Engine.__aenter__(self)

    async def __aexit__(self, *exc: object) -> None:
        if self._entered:
            await Engine.__aexit__(self, *exc)

    async def _die(self) -> None:
        """Be dead, as if the process had been killed: nothing more is written."""
        self._shell.stopping = True
        await self._shell.forget_all()

    def _let_go(self) -> None:
        """Close the code of runs that still wait, outside of any event loop."""
        for live in self._shell.live.values():
            close(live.machine, f"{live.workflow}/{live.run_id}")
        self._shell.live.clear()

    async def _ends(self, workflow: str, id: str, waiting: asyncio.Future[Outcome]) -> Outcome:
        """Wait for an end that needs no more time. Raises AssertionError where it does."""
        await self.settle()
        done, _ = await asyncio.wait([waiting], timeout=STILL)
        if done:
            return waiting.result()
        due = self._next_due()
        raise AssertionError(f"{workflow}/{id} has not ended, and {self._stands_still(due)}")

    def _stands_still(self, due: int | None) -> str:
        if due is None:
            return "no time would end it: send what it waits for before you ask for its result"
        left = (due - self._hand.now()) / 1_000_000
        return (
            f"time stands still, {left:g} s before something is due: "
            "`await engine.advance(…)`, or send what it waits for, before you ask for its result"
        )


class _Opening(NativeDriver):
    """Opens the engine where somebody asks something, and does not wait for time to pass."""

    def __init__(self, store: Any, clock: HandClock, codec: JsonCodec, engine: TestEngine) -> None:
        super().__init__(store, clock, codec)
        self._engine = engine

    async def open(self) -> None:
        """See Driver.open."""
        await super().open()
        await self._engine._opened()

    async def result(self, workflow: str, id: str, /) -> Outcome:
        """See Driver.result."""
        check_run_id(id)
        await self.open()
        waiting = asyncio.ensure_future(super().result(workflow, id))
        try:
            return await self._engine._ends(workflow, id, waiting)
        finally:
            waiting.cancel()
