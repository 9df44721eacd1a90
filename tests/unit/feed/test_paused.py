"""Views of runs that are paused, and of those that go on as new: what is to begin has not, and
what was before is gone."""

from __future__ import annotations

import asyncio

from perdure import Context, workflow
from perdure.feed import WorkflowContinued
from tests.unit.feed.watched import both, checkout, coded, flaky, live_on, now, slow, states
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


def test_a_pause_keeps_what_is_to_come_from_being_shown_as_begun() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), coded, flaky) as engine:
            live = live_on(engine)
            started = await engine.start(coded, 1, id="1")
            await asyncio.sleep(2)
            await started.pause()
            await asyncio.sleep(60)
            assert states(await both(live, engine, "coded")) == {"flaky": "retrying"}
            await started.unpause()
            assert states(await both(live, engine, "coded")) == {"flaky": "running"}

    run(main())


def test_of_a_run_that_went_on_as_new_only_what_it_did_since_is_seen() -> None:
    @workflow(name="entity", max_duration=None)
    async def entity(ctx: Context, life: int) -> str:
        await flaky(life % 2)
        if life < 3:
            await slow()
            ctx.continue_as_new(life + 1)
        await ctx.sleep(30)
        return "done"

    async def main() -> None:
        heard: list[WorkflowContinued] = []
        async with engine_on(VirtualStore(), entity) as engine:
            engine.listen(WorkflowContinued)(heard.append)
            live = live_on(engine, keep="1h")
            started = await engine.start(entity, 0, id="1")
            seen = []
            for _ in range(100):
                seen.append(states(await both(live, engine, "entity")))
                await asyncio.sleep(1)
            assert await started.result() == "done"
            assert [event.version for event in heard] == ["1"] * 3
        assert seen.count({"flaky": "running"}) > 4
        assert {"flaky": "done", "slow": "running"} in seen
        assert seen[-1] == {"flaky": "done", "sleep": "done"}

    run(main())


def test_a_run_that_went_on_as_new_while_it_was_paused_is_seen_as_paused() -> None:
    @workflow(name="entity", max_duration=None)
    async def entity(ctx: Context, life: int) -> None:
        await slow()
        if life == 0:
            ctx.continue_as_new(1)

    async def main() -> None:
        async with engine_on(VirtualStore(), entity) as engine:
            live = live_on(engine)
            started = await engine.start(entity, 0, id="1")
            await asyncio.sleep(5)
            await started.pause()
            await asyncio.sleep(60)
            view = await started.view()
            assert view.paused
            assert states(view.to_dict(now())) == {"slow": "pending"}
            await started.unpause()
            assert states(await both(live, engine, "entity")) == {"slow": "running"}

    run(main())


def test_what_is_to_begin_in_a_run_that_is_paused_is_not_shown_as_begun() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), checkout) as engine:
            live = live_on(engine)
            started = await engine.start(checkout, {}, id="1")
            seen = []
            for second in range(20):
                seen.append(states(await both(live, engine, "checkout")))
                if second in (0, 7):
                    await started.pause()
                if second in (6, 12):
                    await started.unpause()
                await asyncio.sleep(1)
        waits = {"reserve": "done", "charge": "pending", "ship": "pending"}
        last = {"reserve": "done", "charge": "done", "ship": "pending"}
        assert seen[2:7] == [waits] * 5
        assert seen[7] == {**waits, "charge": "running"}
        assert seen[8:13] == [last] * 5
        assert seen[13] == {**last, "ship": "done"}

    run(main())
