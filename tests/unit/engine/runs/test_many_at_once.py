"""Much of the same at one moment: it is done together, and costs no task or thread for each."""

from __future__ import annotations

import asyncio
import threading

from perdure.flow.step import step
from tests.virtual.engines import engine_on, graph, killed, node, task, wait, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, PromptStore, VirtualStore

MANY = 500


@step
async def work() -> str:
    return "done"


NAP = graph("nap", [wait("rest", "5s"), task("work")])
SLOW = graph("slow", [wait_for("go", "go"), task("work")])


def test_timers_of_many_runs_at_one_moment_are_recorded_together() -> None:
    # scenario 76: no timer waits for the disk of the one before it
    async def main() -> None:
        store = LateStore(latency=0.05)
        async with engine_on(store, NAP, work) as engine:
            runs = await asyncio.gather(*(engine.start(NAP, id=str(n)) for n in range(MANY)))
            await asyncio.sleep(4)
            before, began = len(store.sent), asyncio.get_running_loop().time()
            for started in runs:
                assert await started.result() == {"work": "done"}
            batches, took = len(store.sent) - before, asyncio.get_running_loop().time() - began
            assert batches < MANY / 20
            assert took < 3, "one after another they would take 25 s and more"

    run(main())


def test_steps_of_one_run_that_end_together_are_recorded_together() -> None:
    names = [f"t{n}" for n in range(50)]
    edges = [f"{a} {b}" for n in names for a, b in (("f", n), (n, "j"))]
    wide = graph(
        "wide", [node("f", "FORK"), *(task(n, "work") for n in names), node("j", "JOIN")], edges
    )

    async def main() -> None:
        store = PromptStore()
        async with engine_on(store, wide, work) as engine:
            await engine.run(wide)
        assert len(store.sent) <= 4
        assert max(map(len, store.sent)) == 1

    run(main())


def test_many_runs_come_back_without_a_task_or_a_thread_for_each() -> None:
    # scenario 88
    async def main() -> None:
        store, threads = VirtualStore(), threading.active_count()
        async with killed(store, SLOW, work) as engine:
            for n in range(MANY):
                await engine.start(SLOW, id=str(n))
        async with engine_on(store, SLOW, work) as engine:
            await asyncio.sleep(1)
            assert len(engine._shell.live) == MANY
            assert len(asyncio.all_tasks()) < 20
            assert threading.active_count() < threads + 10
            for n in range(MANY):
                await engine.get(SLOW, str(n)).signal("go")
            for n in range(MANY):
                assert await engine.get(SLOW, str(n)).result() == {"work": "done"}

    run(main())


def test_waits_beside_one_another_each_have_a_timer_of_their_own() -> None:
    # scenario 247
    g = graph(
        "g",
        [node("f", "FORK"), wait("a", "3s"), wait("b", "1s"), wait("c", "3s"), node("j", "JOIN")],
        ["f a", "f b", "f c", "a j", "b j", "c j"],
    )

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(2)
            assert (await store.actions("g", "1")).count("ResolveWait b") == 1
            await started.result()
            ended = [a for a in await store.actions("g", "1") if a.startswith("ResolveWait")]
            assert ended == ["ResolveWait b", "ResolveWait a", "ResolveWait c"]

    run(main())
