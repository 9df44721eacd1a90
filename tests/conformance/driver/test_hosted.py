"""Engines over drivers of others: one that wraps perdure's own, and one that executes by itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from perdure import Context, Engine, NotFound, PerdureError, Signal, Unsupported, step, workflow
from perdure.client.engine import Engine as Inner
from perdure.codec.values import JsonCodec
from perdure.conformance import DriverSuite
from perdure.drivers import Driver, Duties, Host, NativeDriver, Outcome, StartRequest, driver_as
from perdure.engine.clock import SystemClock
from perdure.feed import RunEvent
from perdure.model.definition import Definition
from perdure.model.errors import DefinitionError
from perdure.model.status import RunStatus
from perdure.stores.memory import MemoryStore


class Counting:
    """Around another driver: it counts what goes through it."""

    def __init__(self, inner: Driver) -> None:
        self._inner = inner
        self.calls: list[str] = []

    def unwrap(self) -> Driver:
        return self._inner

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    async def definition(self, name: str, /) -> Definition[Any, Any]:
        return await self._inner.definition(name)

    async def start(self, request: StartRequest, /) -> bool:
        self.calls.append("start")
        return await self._inner.start(request)

    async def result(self, workflow: str, id: str, /) -> Outcome:
        self.calls.append("result")
        return await self._inner.result(workflow, id)

    async def status(self, workflow: str, id: str, /) -> RunStatus:
        return await self._inner.status(workflow, id)

    async def signal(
        self, workflow: str, id: str, name: str, value: bytes, key: str | None, /
    ) -> None:
        self.calls.append("signal")
        await self._inner.signal(workflow, id, name, value, key)

    async def cancel(self, workflow: str, id: str, reason: str, /) -> None:
        await self._inner.cancel(workflow, id, reason)


class Somebody(Counting):
    """Somebody else's engine: nobody can see what is inside it. It executes what it is given."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._engine: Inner | None = None
        self.duties: Duties | None = None
        super().__init__(native(store))

    unwrap: Any = None

    def __getattribute__(self, name: str) -> Any:
        if name == "unwrap":
            raise AttributeError(name)
        return super().__getattribute__(name)

    async def work(self, duties: Duties, /) -> None:
        registry = duties.registry
        things: list[Any] = [*registry.definitions.values(), *registry.steps.values()]
        self.duties = duties
        self._engine = Inner(
            self._store, things, resources=duties.resources, threads=duties.threads,
            codec=duties.codec, poll=0.02, grace=0,
        )  # fmt: skip
        await self._engine.__aenter__()
        self._inner = self._engine.driver

    async def rest(self, grace: float, /) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine._grace = grace
            await engine.__aexit__(None, None, None)

    async def close(self) -> None:
        await self.rest(0)


def native(store: MemoryStore) -> NativeDriver:
    return NativeDriver(store, SystemClock(), JsonCodec())


class Quick(DriverSuite):
    """The kit, over an engine that is given a driver."""

    def begin(self) -> None:
        self.store = MemoryStore()

    def driver(self) -> Driver:
        raise NotImplementedError

    @asynccontextmanager
    async def make(self, things: Sequence[Any]) -> AsyncIterator[Driver]:
        driver = self.driver()
        async with Engine(driver, things, poll=0.02, grace=0) as engine:
            assert engine.driver is driver
            yield driver


class TestWrapped(Quick):
    def driver(self) -> Driver:
        return Counting(Counting(native(self.store)))


class TestHosted(Quick):
    def driver(self) -> Driver:
        return Somebody(self.store)


said = Signal("said", str)


class Pool:
    """A resource."""


@step
def shout(text: str) -> str:
    return text.upper()


@workflow(max_duration="1h")
async def hears(ctx: Context) -> str:
    return await shout(await ctx.wait(said))


def test_an_engine_speaks_through_the_wrapper_and_works_below_it() -> None:
    async def play() -> None:
        driver = Counting(native(MemoryStore()))
        async with Engine(driver, [hears]) as engine:
            run = await engine.start(hears, id="1")
            await run.signal(said, "hello")
            assert await run.result() == "HELLO"
            assert driver.calls == ["start", "signal", "result"]
            assert [one.id async for one in engine.runs()] == ["1"]
            assert await engine.resume() == 0
            with pytest.raises(PerdureError, match="works for this driver already"):
                Engine(driver, [hears])
        with pytest.raises(PerdureError, match="closed"):
            await run.status()

    asyncio.run(play())


def test_a_driver_that_executes_is_told_what_and_when_and_asked_for_nothing_else() -> None:
    async def play() -> None:
        driver, pool = Somebody(MemoryStore()), Pool()
        engine = Engine(driver, [hears, shout], resources=iter([pool]), threads=3, name="here")
        assert driver_as(driver, Host) is driver  # type: ignore[type-abstract]
        async with engine:
            duties = driver.duties
            assert duties is not None
            assert (duties.resources, duties.threads, duties.name) == ((pool,), 3, "here")
            assert list(duties.registry.definitions) == ["hears"]
            run = await engine.start(hears, id="1")
            await run.signal(said, "hello")
            assert await run.result() == "HELLO"
            for asked in (engine.resume(), run.describe(), run.pause()):
                with pytest.raises(Unsupported, match="Somebody cannot do that"):
                    await asked
            with pytest.raises(Unsupported):
                engine.listen(RunEvent)(lambda event: None)

    asyncio.run(play())


def test_one_that_cannot_begin_is_closed_and_its_error_told() -> None:
    class Refuses(Somebody):
        closed = False

        async def work(self, duties: Duties, /) -> None:
            raise DefinitionError("this engine knows no workflow hears")

        async def close(self) -> None:
            self.closed = True

    async def play() -> None:
        driver = Refuses(MemoryStore())
        with pytest.raises(DefinitionError, match="knows no workflow hears"):
            async with Engine(driver, [hears]):
                raise AssertionError("it was entered")
        assert driver.closed

    asyncio.run(play())


def test_what_is_not_there_is_not_found_through_both() -> None:
    async def play() -> None:
        for driver in (Counting(native(MemoryStore())), Somebody(MemoryStore())):
            async with Engine(driver, [hears]) as engine:
                with pytest.raises(NotFound):
                    await engine.get(hears, "none").result()

    asyncio.run(play())
