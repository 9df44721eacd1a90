"""Times that code computes, and that are over already: no limit, or no wait, and never an error."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from perdure import After, Channel, Context, RunFailed, Signal, workflow
from perdure.model.errors import InvalidOptions
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

told = Signal("told", str)
news = Channel("news", str)
OVER = [0, -1, -0.0000001, timedelta(seconds=-3)]


@workflow(max_duration="1h")
async def patient(ctx: Context, seconds: float) -> list[str]:
    first = await ctx.wait(told, timeout=seconds)
    return [first, await ctx.receive(news, timeout=timedelta(seconds=seconds))]


@workflow(max_duration="1h")
async def quick(ctx: Context) -> float:
    began = ctx.now()
    for over in OVER:
        await ctx.sleep(over)
        value = await ctx.select(told, After(over, lambda: "over"))
        assert value == "over"
    return (ctx.now() - began).total_seconds()


@pytest.mark.rule("W-31")
@pytest.mark.parametrize("seconds", [0, -5, -0.0000001])
def test_a_timeout_of_nothing_or_less_is_no_limit(seconds: float) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), patient) as engine:
            started = await engine.start(patient, seconds, id="1")
            with pytest.raises(TimeoutError):
                await started.result(timeout="50m")
            await started.signal(told, "a")
            await started.signal(news, "b")
            assert await started.result() == ["a", "b"]

    run(main())


@pytest.mark.rule("W-33")
def test_a_delay_that_is_over_is_over_at_once() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), quick) as engine:
            assert await engine.run(quick) == 0

    run(main())


@pytest.mark.rule("W-33")
def test_a_signal_that_is_there_comes_before_a_time_that_is_over() -> None:
    @workflow(max_duration="1h")
    async def either(ctx: Context) -> str:
        await ctx.sleep(1)
        return await ctx.select(After(-1, lambda: "time"), told)

    async def main() -> None:
        async with engine_on(VirtualStore(), either) as engine:
            started = await engine.start(either)
            await started.signal(told, "signal")
            assert await started.result() == "signal"

    run(main())


@workflow(max_duration="1h")
async def mapped(ctx: Context, how: str) -> None:
    wrong: Any = how
    await ctx.map(ctx.sleep, [1], on_failure=wrong)


def test_what_is_no_time_and_no_choice_is_refused() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), mapped) as engine:
            with pytest.raises(RunFailed, match='use "raise" or "collect"'):
                await engine.run(mapped, "colect")

    for wrong in ("-5s", float("-inf"), True):
        with pytest.raises(InvalidOptions):
            After(wrong)
    run(main())
