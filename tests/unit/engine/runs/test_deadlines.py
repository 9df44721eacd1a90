"""Deadlines that come at an awkward moment: while the run is stopping already, or while nobody
held it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Context, step, workflow
from perdure.engine.runs.live_run import LiveRun
from perdure.stores.rows import Message
from tests.virtual.engines import engine_on, graph, killed, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Why events counted for nothing. So many of them are a loop without an end."""
    reasons: list[str] = []

    def not_heard(live: LiveRun, event: Any, reason: str) -> None:
        reasons.append(reason)
        if len(reasons) > 20:
            raise KeyboardInterrupt(reason)

    monkeypatch.setattr(LiveRun, "not_heard", not_heard)
    return reasons


@step
async def note(what: str) -> str:
    done.append(what)
    return what


@workflow(max_duration=10)
async def cleans_up(ctx: Context) -> None:
    try:
        await asyncio.sleep(100)
    finally:
        await asyncio.sleep(8)
        await note("cleaned up")


def test_a_deadline_that_comes_while_a_run_cleans_up_is_told_once(unheard: list[str]) -> None:
    # scenario 25: the first reason stays
    async def main() -> None:
        async with engine_on(VirtualStore(), cleans_up, note) as engine:
            started = await engine.start(cleans_up, id="1")
            await asyncio.sleep(5)
            await started.cancel()
            await asyncio.sleep(20)
            assert await started.status() == "canceled"

    run(main())
    assert done == ["cleaned up"]
    assert unheard == ["the run is stopping already: cancelled"]


def test_nor_does_a_run_hear_of_it_again_that_is_loaded_while_it_cleans_up(
    unheard: list[str],
) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with killed(store, cleans_up, note) as first:
            await first.start(cleans_up, id="1")
            await asyncio.sleep(12)
        async with engine_on(store, cleans_up, note) as second:
            await asyncio.sleep(20)
            assert await second.get(cleans_up, "1").status() == "failed"

    run(main())
    assert done == ["cleaned up"]
    assert len(unheard) == 1


@step
async def slow() -> None:
    done.append("slow")
    await asyncio.sleep(5)


late = graph("late", [task("slow")], max_duration="10s")


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
@pytest.mark.parametrize("signals", [0, 1, 2])
def test_nothing_starts_of_a_run_whose_deadline_came_while_nobody_held_it(
    kind: type[VirtualStore], signals: int
) -> None:
    async def main() -> None:
        store = kind()
        async with killed(store, late, slow) as first:
            await first.start(late, id="1")
            await asyncio.sleep(2)
        for n in range(signals):
            await store.post([Message("late", "1", f"m{n}", "signal", "go", b"1")])
        await asyncio.sleep(20)
        async with engine_on(store, late, slow) as second:
            await asyncio.sleep(1)
            assert await second.get(late, "1").status() == "failed"
            shown = await second.get(late, "1").describe()
            assert shown.failure is not None
            assert shown.failure.kind == "workflow.timeout"

    run(main())
    assert done == ["slow"]
