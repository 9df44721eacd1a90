"""Drivers: a client over any engine, and what it says where that engine cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from perdure import (
    AlreadyStarted,
    Client,
    Context,
    Engine,
    InvalidRequest,
    NotFound,
    RunFailed,
    Signal,
    Step,
    StoreError,
    TimedOut,
    Unsupported,
    step,
    workflow,
)
from perdure.drivers import (
    Driver,
    NativeDriver,
    Outcome,
    RawCase,
    StartRequest,
    StepCall,
    driver_as,
)
from perdure.model.definition import Definition
from perdure.model.errors import InvalidId, NoCases
from perdure.model.failure import FailureRecord
from perdure.model.protocols import fits
from perdure.stores.memory import MemoryStore
from perdure.stores.port import RunQuery


@workflow(max_duration="1h")
async def square(ctx: Context, n: int) -> int:
    return n * n


name = Signal("name", str)


class Foreign:
    """An engine of somebody else's, as small as can be: it squares what it is given."""

    def __init__(self) -> None:
        self.runs: dict[tuple[str, str], Outcome] = {}
        self.told: list[tuple[Any, ...]] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def definition(self, name: str, /) -> Definition[Any, Any]:
        if name != "square":
            raise NotFound(f"there is no workflow {name}")
        return square

    async def start(self, request: StartRequest, /) -> bool:
        key = (request.definition.name, request.id)
        if key in self.runs:
            return False
        assert request.input is not None
        number = int(bytes(request.input))
        broken = FailureRecord("negative", "a negative number")
        self.runs[key] = (
            Outcome("completed", str(number**2).encode())
            if number >= 0
            else Outcome("failed", failure=broken)
        )
        return True

    async def result(self, workflow: str, id: str, /) -> Outcome:
        return self._found(workflow, id)

    async def status(self, workflow: str, id: str, /) -> Any:
        return self._found(workflow, id).status

    async def signal(
        self, workflow: str, id: str, name: str, value: bytes, key: str | None, /
    ) -> None:
        self._found(workflow, id)
        self.told.append((name, value, key))

    async def cancel(self, workflow: str, id: str, reason: str, /) -> None:
        self._found(workflow, id)
        self.told.append(("cancel", reason))

    def _found(self, workflow: str, id: str) -> Outcome:
        try:
            return self.runs[workflow, id]
        except KeyError:
            raise NotFound(f"there is no run {workflow}/{id}") from None


class Around:
    """A wrapper that counts starts and passes everything else on."""

    def __init__(self, inner: Driver) -> None:
        self._inner = inner
        self.starts = 0

    def unwrap(self) -> Driver:
        return self._inner

    async def start(self, request: StartRequest, /) -> bool:
        self.starts += 1
        return await self._inner.start(request)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def native() -> NativeDriver:
    found = Client(MemoryStore()).driver_as(NativeDriver)
    assert found is not None
    return found


@pytest.mark.rule("W-49")
def test_a_client_over_somebody_else_s_engine_keeps_types_and_errors() -> None:
    async def play() -> None:
        driver = Foreign()
        async with Client(driver) as client:
            run = await client.start(square, 3, id="1")
            assert await run.result() == 9
            assert await run.status() == "completed"
            assert await client.get("square", "1").result() == 9
            assert await client.run("square", 4) == 16
            with pytest.raises(AlreadyStarted):
                await client.start(square, 3, id="1")
            assert (await client.start(square, 3, id="1", if_exists="join")).id == "1"
            with pytest.raises(RunFailed, match="a negative number") as failed:
                await client.run(square, -1)
            assert failed.value.kind == "negative"
            with pytest.raises(NotFound):
                await client.get(square, "none").status()
            with pytest.raises(InvalidId):
                await client.get(square, "a\nb").result()
            await run.signal(name, "Ann", dedupe_key="k")
            await run.cancel("enough")
            assert driver.told == [("name", b'"Ann"', "k"), ("cancel", "enough")]
            with pytest.raises(InvalidRequest):
                await client.start(square, "3")  # type: ignore[misc]

    asyncio.run(play())


def test_what_another_engine_cannot_be_asked_is_unsupported_and_nothing_is_done() -> None:
    async def play() -> None:
        driver = Foreign()
        client = Client(driver)
        run = await client.start(square, 3, id="1")
        asked: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            run.pause, run.unpause, run.describe, client.definitions,
            lambda: run.retry(failed=True), lambda: client.publish(square),
            lambda: anext(client.runs()), lambda: anext(run.history()),
        ]  # fmt: skip
        for ask in asked:
            with pytest.raises(Unsupported, match="Foreign cannot do that"):
                await ask()
        assert driver.told == []

    asyncio.run(play())
    with pytest.raises(Unsupported, match="Foreign executes nothing in this process"):
        Engine(Foreign())


@pytest.mark.rule("W-25")
def test_a_client_gives_its_driver_and_those_inside_it_without_io() -> None:
    inner = native()
    outer = Around(Around(inner))  # type: ignore[arg-type]
    client = Client(outer)  # type: ignore[arg-type]
    assert client.driver is outer  # type: ignore[comparison-overlap]
    assert client.driver_as(NativeDriver) is inner
    assert client.driver_as(Around) is outer
    assert client.driver_as(Foreign) is None
    assert driver_as(Foreign(), NativeDriver) is None
    assert not inner.is_open


def test_a_wrapper_around_the_native_driver_sees_what_goes_through_it() -> None:
    async def play() -> None:
        store = MemoryStore()
        inner: Any = NativeDriver(store, native().clock, native().codec)
        outer = Around(inner)
        async with Client(outer) as client:  # type: ignore[arg-type]
            run = await client.start(square, 3, id="1")
            assert (outer.starts, await run.status()) == (1, "running")
            assert [info.id async for info in client.runs()] == ["1"]

    asyncio.run(play())


class PassesOn:
    """A wrapper that says of itself only what it is around."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def unwrap(self) -> Any:
        return self.inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_wrapper_that_passes_everything_on_is_a_driver_on_every_python() -> None:
    async def main() -> None:
        async with Engine("memory:", [square]) as engine:
            client = Client(PassesOn(engine.driver))
            assert await client.run(square, 4) == 16
            assert client.driver_as(NativeDriver) is engine.driver
            assert not fits(PassesOn(MemoryStore()), Driver)

    asyncio.run(main())


def test_an_error_of_the_store_reaches_the_caller_as_it_is() -> None:
    async def play() -> None:
        store = MemoryStore()

        async def broken(*_: Any) -> Any:
            raise StoreError("no disk")

        async with Client(store) as client:
            store.describe = broken  # type: ignore[method-assign]
            with pytest.raises(StoreError, match="no disk"):
                await client.get(square, "1").status()

    asyncio.run(play())


@pytest.mark.rule("W-55")
def test_a_run_goes_on_wherever_its_workflow_is_registered_by_name() -> None:
    ready = Signal("ready", int)

    def declared() -> Any:
        @workflow(max_duration="1h", name="waits")
        async def code(ctx: Context) -> int:
            return await ctx.wait(ready)

        return code

    async def play() -> None:
        store = MemoryStore()
        async with Engine(store, [declared()]) as first:
            await first.start("waits", id="1")
        async with Engine(store, [square]) as none, Engine(store, [declared()]) as second:
            with pytest.raises(NotFound):
                await none.start("unknown", id="2")
            await none.start("waits", id="2")
            for run in (second.get("waits", "1"), none.get("waits", "2")):
                await run.signal(ready, 7)
                assert await run.result(timeout=20) == 7

    asyncio.run(play())


# ------------------------------------------------------------------ the runtime


@step(retry=7, timeout="3s")
async def plus_one(n: int) -> int:
    return n + 1


def played(code: Callable[[Context], Coroutine[Any, Any, Any]], *sent: tuple[str, Any]) -> Any:
    async def function(ctx: Context) -> Any:
        return await code(ctx)

    made = workflow(max_duration="1h", name="played")(function)

    async def play() -> Any:
        store = MemoryStore()
        async with Client(store) as client:
            run = await client.start(made, id="1")
            for to, value in sent:
                await run.signal(to, value)
            async with Engine(store, [made]) as engine:
                result = await engine.get(made, "1").result(timeout=20)
                assert await engine._store.find(RunQuery())
                return result

    return asyncio.run(play())


@pytest.mark.rule("W-51")
def test_a_wait_of_the_runtime_gives_the_next_raw_value_each_time() -> None:
    async def code(ctx: Context) -> list[str]:
        values = [(await ctx.raw.wait("name")).decode() for _ in range(2)]
        try:
            await ctx.raw.wait("name", ctx.raw.now() + 1000)
        except TimedOut:
            values.append("over")
        return values

    assert played(code, ("name", "Ann"), ("name", {"b": 1})) == ['"Ann"', '{"b":1}', "over"]


@pytest.mark.rule("W-52")
def test_a_select_of_the_runtime_answers_with_the_place_and_the_value() -> None:
    async def code(ctx: Context) -> list[Any]:
        raw = ctx.raw
        later = RawCase(due=raw.now() + 3_600_000_000)
        first = await raw.select([later, RawCase("name")])
        second = await raw.select([RawCase("name"), RawCase(due=raw.now())])
        with pytest.raises(NoCases):
            await raw.select([])
        return [first[0], first[1].decode(), second[0], second[1].decode()]

    assert played(code, ("name", "Ann")) == [1, '"Ann"', 1, "null"]


@pytest.mark.rule("W-50")
def test_a_step_of_the_runtime_runs_under_the_policy_of_its_call() -> None:
    tries: list[int] = []

    @step
    async def breaks() -> None:
        tries.append(1)
        raise ValueError("broken")

    def call(of: Step[..., Any], input: bytes | None, attempts: int) -> StepCall:
        policy = of.with_options(retry=attempts).retry.policy
        return StepCall(of.name, input, policy, of.timeout_us, step=of)

    async def code(ctx: Context) -> Any:
        raw = ctx.raw
        with pytest.raises(Unsupported, match="not names"):
            raw.step(StepCall("plus-one", b"1", plus_one.retry.policy, 0))
        with pytest.raises(Exception, match="broken"):
            await raw.step(call(breaks, None, 1))
        assert (raw.id, raw.workflow, dict(raw.metadata), raw.canceled) == (
            "1", "played", {}, False,
        )  # fmt: skip
        await raw.sleep(raw.now() + 1)
        assert raw.patched("new")
        return (await raw.step(call(plus_one, b"4", 1))).decode()

    assert played(code) == "5"
    assert len(tries) == 1


def test_another_engine_is_asked_for_each_name_that_a_workflow_had() -> None:
    @workflow(max_duration="1h", name="square", aliases=["root", "old"])
    async def renamed(ctx: Context, n: int) -> int:
        return n * n

    async def play() -> None:
        driver = Foreign()
        driver.runs["old", "1"] = Outcome("completed", b"9")
        client = Client(driver)
        with pytest.raises(AlreadyStarted, match="old/1 is there already"):
            await client.start(renamed, 3, id="1")
        assert await client.run(renamed, 3, idempotency_key="1") == 9
        assert [*driver.runs] == [("old", "1")]
        assert await client.run(renamed, 4, id="2") == 16
        assert [*driver.runs] == [("old", "1"), ("square", "2")]

    asyncio.run(play())
