"""A worker that lives for months: what has ended leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import Any

import pytest

from perdure.engine.runs.live_run import LiveRun
from perdure.flow.context import Context
from perdure.flow.signal import Channel
from perdure.flow.step import step
from perdure.flow.workflow import workflow
from perdure.kernel.code.call import CallFuture
from perdure.model.errors import Failure
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.virtual.engines import engine_on, graph, node, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore


class NotYet(Failure, kind="not-yet"):
    """Try again."""


@step(retry=Retry(2, initial=1), timeout=30)
async def work(fails: bool) -> str:
    await asyncio.sleep(1)
    if fails or current_step().attempt == 1:
        raise NotYet("not yet")
    return "x" * 5000


FAN = graph(
    "fan",
    [node("f", "FORK"), *(task(f"n{i}", "work", {"fails": "{{input.fails}}"}) for i in range(3)),
     node("j", "JOIN")],
    [*(f"f n{i}" for i in range(3)), *(f"n{i} j" for i in range(3))],
    max_duration="1h",
)  # fmt: skip


def live_runs() -> list[LiveRun]:
    """Those in this process: other tests may have left some, with engines that were not closed."""
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) is LiveRun]


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_runs_that_ended_leave_no_object_task_timer_or_watch(kind: type[VirtualStore]) -> None:
    before = live_runs()

    async def main() -> None:
        async with engine_on(kind(), FAN, work) as engine:
            for i in range(20):
                started = await engine.start(FAN, {"fails": i % 2 == 0})
                with suppress(NotYet):
                    await started.result()
            await asyncio.sleep(5)
            shell = engine._shell
            assert shell.live == {}
            assert len(shell.tasks) == 4, "due runs, beats, mail, what is over its time"
            assert shell.in_hand == set()
            assert shell.waiters._futures == {}
            assert shell.starts._waiting == {}
            loop: Any = asyncio.get_running_loop()
            armed = [timer for timer in loop._scheduled if not timer.cancelled()]
            assert len(armed) <= 4, "the poll, the beat, the purge, the sweep of timeouts"
            # Watches of attempts that ended hold theirs until the sweep, at most their timeout.
            await asyncio.sleep(60)
            assert [live for live in live_runs() if live not in before] == []

    run(main())


NEWS = Channel("news", int)


@workflow(max_duration=None)
async def waits(ctx: Context) -> None:
    await ctx.receive(NEWS)


@workflow(max_duration=None)
async def sleeps(ctx: Context) -> None:
    await ctx.sleep(3600)


def futures() -> int:
    """How many calls of workflows there are in this process, whoever refers to them."""
    return sum(issubclass(type(thing), CallFuture) for thing in gc.get_objects())


@pytest.mark.parametrize("flow", [waits, sleeps])
def test_a_workflow_that_is_parked_leaves_nothing_to_the_garbage_collector(flow: Any) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), flow) as engine:
            gc.collect()
            before = futures()
            gc.disable()
            try:
                await engine.start(flow, id="1")
                await asyncio.sleep(1)
                assert futures() == before + 1
                await asyncio.sleep(60)
                assert not engine._shell.live
                assert futures() == before
            finally:
                gc.enable()

    run(main())
