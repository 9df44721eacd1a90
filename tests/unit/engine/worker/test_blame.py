"""A run that takes its workers down with it, over and over, stalls alone: runs that only wait, and
were in the same workers' memory, are not blamed for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from perdure import Context, Signal, step, workflow
from perdure.stores.port import CRASH_LIMIT, LONE_CRASHES
from tests.virtual.engines import client_on, engine_on, graph, killed, wait, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

go = Signal("go", int)
begun: list[asyncio.Event] = []
ASKS = graph("asks", [wait_for("ok", "go")])
RESTS = graph("rests", [wait("rest", "1h")])


@step
async def kill_everybody() -> None:
    begun[-1].set()
    await asyncio.sleep(60)


@workflow(max_duration=None)
async def deadly(ctx: Context) -> None:
    await kill_everybody()


@workflow(max_duration=None)
async def patient(ctx: Context) -> int:
    return await ctx.wait(go)


@workflow(max_duration=None)
async def parent(ctx: Context) -> int:
    return await ctx.child(patient, id="of-parent")


ALL = (deadly, patient, parent, ASKS, RESTS)


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_runs_that_only_wait_are_not_blamed_for_one_that_kills_its_workers(
    kind: Callable[[], VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with client_on(store) as client:
            await client.start(deadly, id="d")
            for one in ALL[1:]:
                await client.start(one, id="1")
        for _ in range(CRASH_LIMIT + 1):
            begun.append(asyncio.Event())
            async with killed(store, *ALL, poll=0.5):
                await begun[-1].wait()
                await asyncio.sleep(8)  # meanwhile the others come into memory, too
        async with engine_on(store, *ALL, poll=0.5) as engine:
            await asyncio.sleep(30)
            assert "died" in str((await engine.get(deadly, "d").describe()).stalled)
            for one in ALL[1:]:
                other = engine.get(one, "1")
                info = await other.describe()
                assert (info.status, info.stalled) == ("running", None), info
                assert (await other._row()).crashes <= LONE_CRASHES
            await engine.get(patient, "1").signal(go, 7)
            assert await engine.get(patient, "1").result(timeout=5) == 7

    run(main())


def test_however_many_only_wait_others_have_their_turn_at_once() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            for n in range(100):
                await client.start(ASKS, id=str(n))
        for _ in range(LONE_CRASHES + 1):
            async with killed(store, ASKS):
                await asyncio.sleep(0.5)
        async with engine_on(store, ASKS) as engine:
            await client_on(store).start(ASKS, id="new")
            await client_on(store).get(ASKS, "new").signal("go")
            assert await engine.get(ASKS, "new").result(timeout=5) == {"ok": {}}
            assert (await engine.get(ASKS, "99").describe()).status == "running"

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
@pytest.mark.parametrize("rests", [False, True])
def test_when_a_run_that_came_alone_has_left_the_next_comes_at_once(
    kind: Callable[[], VirtualStore], rests: bool
) -> None:
    # Each ends, or comes to rest, a moment after it was taken up; nobody polls meanwhile.
    seconds = [60.0]

    @step
    async def work() -> None:
        await asyncio.sleep(seconds[-1])

    @workflow(max_duration=None)
    async def works(ctx: Context) -> None:
        await work()
        if rests:
            await ctx.wait(go)

    async def main() -> None:
        store = kind()
        async with client_on(store) as client:
            for n in range(10):
                await client.start(works, id=str(n))
        for _ in range(LONE_CRASHES):
            async with killed(store, works, work, poll=0.5):
                await asyncio.sleep(5)
        seconds.append(0.1)
        async with engine_on(store, works, work, poll=1000.0, park_after=1.0) as engine:
            await asyncio.sleep(200 if rests else 20)
            for n in range(10):
                assert "CompleteTask work" in await store.actions("works", str(n))
                status = (await engine.get(works, str(n)).describe()).status
                assert status == ("running" if rests else "completed")

    run(main())
