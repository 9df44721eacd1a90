"""What a workflow's context tells: who the run is, the time, ids and chance, the same on replay."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from perdure import Channel, Context, Signal, step, workflow
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

go = Signal("go", int)
news = Channel("news", int)


@step
async def work(value: int) -> int:
    return value


@pytest.mark.rule("W-37", "W-28")
def test_a_run_knows_itself_and_its_chance_is_the_same_on_replay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[list[Any]] = []

    @workflow(max_duration=None)
    async def introspective(ctx: Context) -> list[str]:
        ctx.logger.info("begun")
        drawn = [str(ctx.uuid()), ctx.random.random(), str(ctx.now())]
        seen.append(drawn)
        await ctx.wait(go)
        ctx.logger.info("told")
        return [ctx.id, ctx.name, ctx.metadata["who"], str(ctx.uuid())]

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, introspective) as first:
            await first.start(introspective, id="1", metadata={"who": "ann"})
            await asyncio.sleep(30)
        async with engine_on(store, introspective) as second:
            started = second.get(introspective, "1")
            await started.signal(go, 1)
            got = await started.result()
            assert got[:3] == ["1", "introspective", "ann"]
            assert seen[0] == seen[1]
            assert got[3] != seen[0][0]

    with caplog.at_level(logging.INFO, "perdure.workflow"):
        run(main())
    told = [r.getMessage() for r in caplog.records if r.name == "perdure.workflow"]
    assert told == ["introspective/1: begun", "introspective/1: told"], "silent on replay"


@pytest.mark.rule("W-51")
def test_messages_are_taken_each_once_in_the_order_in_which_they_were_sent() -> None:
    @workflow(max_duration=None)
    async def reads(ctx: Context) -> list[int]:
        got = [await ctx.receive(news)]
        await ctx.sleep("1h")
        return [*got, await ctx.receive(news), await ctx.receive(news)]

    async def main() -> None:
        async with engine_on(VirtualStore(), reads) as engine:
            started = await engine.start(reads, id="1")
            for number in (1, 2, 3):
                await started.signal(news, number)
            assert await started.result() == [1, 2, 3]

    run(main())


@pytest.mark.rule("W-15")
def test_a_call_with_arguments_that_do_not_fit_is_refused_before_anything_is_recorded() -> None:
    @workflow(max_duration=None)
    async def mistaken(ctx: Context) -> str:
        try:
            await work(1, 2)  # type: ignore[call-arg]
        except TypeError as error:
            return str(error)
        return ""

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, mistaken) as engine:
            assert "step work" in await engine.run(mistaken, id="1")
            assert "CreateTask work" not in await store.actions("mistaken", "1")

    run(main())
