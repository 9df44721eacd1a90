"""Large values stand apart from the journal and come back; too large ones are refused in code."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Context, RunFailed, Signal, StepFailed, step, workflow
from perdure.model.errors import PayloadTooLarge
from tests.virtual.engines import client_on, engine_on, killed
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

go = Signal("go", str)
LARGE = "x" * 20_000
TOO_LARGE = "x" * (4 * 1024 * 1024 + 1)


@step
async def grow(text: str) -> str:
    return text + "!"


@step
async def measure(text: str) -> int:
    return len(text)


@workflow(max_duration=None)
async def large(ctx: Context, text: str) -> list[Any]:
    grown = await grow(text)
    said = await ctx.wait(go)
    return [grown, said, await measure(grown + said), await grow(said)]


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
@pytest.mark.parametrize("early", [True, False])
def test_large_values_survive_a_killed_engine(kind: type[VirtualStore], early: bool) -> None:
    async def main() -> None:
        store = kind()
        async with killed(store, large) as first:
            started = await first.start(large, LARGE, id="1")
            await asyncio.sleep(30)
            if early:
                await started.signal(go, LARGE)
        if not early:
            await client_on(store).get("large", "1").signal("go", LARGE)
        async with engine_on(store, large) as second:
            got: Any = await second.get(large, "1").result()
            assert got == [LARGE + "!", LARGE, 40_001, LARGE + "!"]
            assert await second.get(large, "1").result() == got

    run(main())


def test_a_kept_large_signal_is_there_for_code_that_asks_later_and_on_replay() -> None:
    @workflow(max_duration=None)
    async def asks_late(ctx: Context) -> int:
        await ctx.sleep("1h")
        text = await ctx.wait(go)
        await ctx.sleep("1h")
        return await measure(text)

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, asks_late) as engine:
            started = await engine.start(asks_late, id="1")
            await started.signal(go, LARGE)
            assert await started.result() == 20_000

    run(main())


def test_a_large_value_is_kept_over_continue_as_new() -> None:
    @workflow(max_duration=None)
    async def again(ctx: Context, text: str) -> list[Any]:
        if not text:
            await ctx.sleep(30)
            ctx.continue_as_new(LARGE)
        await ctx.sleep("1h")
        return [text, await ctx.wait(go)]

    async def main() -> None:
        # scenario 51
        async with engine_on(LateStore(), again) as engine:
            started = await engine.start(again, "", id="1")
            await started.signal(go, LARGE)
            assert await started.result() == [LARGE, LARGE]

    run(main())


def test_a_value_that_is_too_large_is_refused_where_the_code_gives_it() -> None:
    # scenario 112
    @step
    async def swells() -> str:
        return TOO_LARGE

    @workflow(max_duration=None)
    async def careless(ctx: Context) -> list[str]:
        said = []
        for call in (lambda: grow(TOO_LARGE), swells):
            try:
                await call()
            except Exception as error:
                said.append(type(error).__name__)
        return said

    @workflow(max_duration=None)
    async def returns(ctx: Context) -> str:
        return TOO_LARGE

    async def main() -> None:
        async with engine_on(VirtualStore(), careless, returns) as engine:
            first, second = await engine.run(careless, id="1")
            assert (first, second) == (PayloadTooLarge.__name__, StepFailed.__name__)
            with pytest.raises(RunFailed, match="over the limit of 4,194,304 bytes"):
                await engine.run(returns, id="1")

    run(main())


def test_a_map_over_thousands_of_items_has_no_more_open_at_once_than_it_may() -> None:
    engines: list[Any] = []
    most = [0, 0]

    @step
    async def one(value: int) -> int:
        (live,) = engines[0]._shell.live.values()
        calls = live.machine.calls
        most[:] = max(most[0], len(calls.open)), max(most[1], len(calls.loop.tasks))
        await asyncio.sleep(0.1)
        return value

    @workflow(max_duration=None)
    async def wide(ctx: Context, count: int) -> int:
        return sum(await ctx.map(one, range(count), concurrency=50))

    async def main() -> None:
        async with engine_on(VirtualStore(), wide) as engine:
            engines.append(engine)
            assert await engine.run(wide, 5_000, id="1") == 5_000 * 4_999 // 2

    run(main())
    assert most == [50, 51]
