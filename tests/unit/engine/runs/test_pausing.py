"""A pause holds attempts and nothing else; it outlives crashes and parking."""

from __future__ import annotations

import asyncio

import pytest

from perdure.flow.step import step
from perdure.model.errors import Failure, NotFound, RunFinished, TimedOut
from perdure.model.policy import Retry
from tests.virtual.engines import engine_on, graph, killed, node, task, wait, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
made: list[str] = []


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    made.clear()


@step
async def slow(name: str) -> str:
    made.append(name)
    await asyncio.sleep(10)
    return name


CHAIN = graph("chain", [task(n, "slow", {"name": n}) for n in "abc"])


@STORES
def test_what_is_under_way_ends_and_is_recorded_and_nothing_further_starts(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with engine_on(store, CHAIN, slow) as engine:
            started = await engine.start(CHAIN, id="1")
            await asyncio.sleep(5)
            await started.pause()
            await asyncio.sleep(600)
            assert made == ["a"]
            assert "CompleteTask a" in await store.actions("chain", "1")
            assert await started.status() == "running"
            await started.unpause()
            assert await started.result() == {"c": "c"}

    run(main())


@STORES
def test_a_paused_run_stays_paused_over_a_crash_and_outside_of_memory(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with killed(store, CHAIN, slow) as engine:
            started = await engine.start(CHAIN, id="1")
            await asyncio.sleep(5)
            await started.pause()
            await asyncio.sleep(1)
        async with killed(store, CHAIN, slow) as engine:
            await asyncio.sleep(3)
            assert len(engine._shell.live) == 1
            await asyncio.sleep(30)
            assert engine._shell.live == {}, "parked like any run that waits"
        async with engine_on(store, CHAIN, slow) as engine:
            await asyncio.sleep(60)
            assert made == ["a"]
            again = engine.get(CHAIN, "1")
            await again.unpause()
            assert await again.result() == {"c": "c"}
        assert made == ["a", "a", "b", "c"]

    run(main())


def test_timers_and_signals_are_recorded_while_a_run_is_paused() -> None:
    g = graph(
        "g",
        [node("f", "FORK"), wait("rest", "30s"), wait_for("ok", "approved"),
         task("a", "slow", {"name": "a"}), task("b", "slow", {"name": "b"})],
        ["f rest", "f ok", "rest a", "ok b"],
    )  # fmt: skip

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, slow) as engine:
            started = await engine.start(g, id="1")
            await started.pause()
            await started.signal("approved")
            await asyncio.sleep(60)
            actions = await store.actions("g", "1")
            assert "ResolveWait ok" in actions
            assert "ResolveWait rest" in actions
            assert made == []
            await started.unpause()
            await started.result()
            assert sorted(made) == ["a", "b"]

    run(main())


def test_a_retry_that_comes_due_in_a_pause_waits_for_its_end() -> None:
    @step(retry=Retry(3, initial=5))
    async def flaky() -> str:
        made.append("flaky")
        if len(made) == 1:
            raise Failure("not yet")
        return "done"

    g = graph("g", [task("flaky")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, flaky) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(1)
            await started.pause()
            await asyncio.sleep(60)
            assert made == ["flaky"]
            await started.unpause()
            assert await started.result() == {"flaky": "done"}

    run(main())


def test_the_deadline_runs_on_in_a_pause() -> None:
    g = graph("g", [task("a", "slow", {"name": "a"}), task("b", "slow", {"name": "b"})],
              max_duration="1h")  # fmt: skip

    async def main() -> None:
        async with engine_on(VirtualStore(), g, slow) as engine:
            started = await engine.start(g, id="1")
            await started.pause()
            with pytest.raises(TimedOut, match="max_duration"):
                await started.result()

    run(main())


def test_a_paused_run_can_be_cancelled() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), CHAIN, slow) as engine:
            started = await engine.start(CHAIN, id="1")
            await started.pause()
            await asyncio.sleep(60)
            await started.cancel()
            await asyncio.sleep(1)
            assert await started.status() == "canceled"

    run(main())


def test_pausing_what_has_ended_or_is_not_there_is_told() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), CHAIN, slow) as engine:
            started = await engine.start(CHAIN, id="1")
            await started.result()
            for ask in (started.pause, started.unpause):
                with pytest.raises(RunFinished, match="chain/1"):
                    await ask()
            with pytest.raises(NotFound):
                await engine.get(CHAIN, "2").pause()

    run(main())
