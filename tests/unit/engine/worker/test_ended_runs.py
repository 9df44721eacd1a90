"""What ended leaves nothing behind: counted, with the garbage collector turned off."""

from __future__ import annotations

import asyncio
import gc

import pytest

from perdure.engine.runs.live_run import LiveRun
from perdure.engine.runs.runners import Runners
from perdure.flow.step import step
from perdure.kernel.machine import GraphMachine
from perdure.kernel.turn import Turn
from tests.virtual.engines import engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

KEPT_BY_LIVE_RUNS = (LiveRun, Runners, GraphMachine, Turn)


def alive() -> list[str]:
    """What there is of live runs, exceptions included: each holds the frames it went through."""
    kinds = (*KEPT_BY_LIVE_RUNS, asyncio.CancelledError)
    return [type(thing).__name__ for thing in gc.get_objects() if isinstance(thing, kinds)]


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_ended_runs_are_freed_at_once_and_not_when_garbage_is_collected(
    kind: type[VirtualStore],
) -> None:
    @step
    async def work(waits: bool) -> None:
        if waits:
            await asyncio.sleep(1)

    chain = graph("chain", [task(f"n{i}", "work", {"waits": i % 2 == 0}) for i in range(4)])

    async def main() -> None:
        async with engine_on(kind(), chain, work) as engine:
            await engine.run(chain, id="first")
            await asyncio.sleep(1)
            gc.collect()
            gc.disable()
            try:
                before = alive()
                for number in range(5):
                    await engine.run(chain, id=str(number))
                await asyncio.sleep(1)
                assert alive() == before
            finally:
                gc.enable()

    run(main())
