"""Steps stand beside the code that calls them: whatever that is in the middle of, they begin when
its turn is over, with a stack of their own, and do nothing to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Generator
from typing import Any

import pytest

from perdure import Context, step, workflow
from perdure.kernel.code.forbidden import ForbiddenInWorkflow
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step
async def said(what: str) -> str:
    return what


@step
async def descends(left: int) -> int:
    """As many calls within one another."""

    def next_of(left: int) -> int:
        return 0 if left == 0 else 1 + next_of(left - 1)

    return next_of(left)


class Both:
    """Two awaitables, awaited at once: each is begun before either has an outcome."""

    def __init__(self, *awaitables: Awaitable[str]) -> None:
        self._parts: list[Any] = [one.__await__() for one in awaitables]

    def __await__(self) -> Generator[Any, None, list[str]]:
        waits = [next(part) for part in self._parts]
        said = []
        for part, future in zip(self._parts, waits, strict=True):
            future._asyncio_future_blocking = True
            yield future
            try:
                part.send(None)
            except StopIteration as stop:
                said.append(stop.value)
        return said


def test_a_step_that_is_called_by_hand_begins_when_the_turn_is_over() -> None:
    @workflow(max_duration=None)
    async def joins(ctx: Context) -> list[str]:
        await said("first")
        both = await Both(said("a"), said("b"))
        await ctx.sleep(60)
        return both

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, joins) as engine:
            await engine.start(joins, id="1")
            await asyncio.sleep(1)
        asked = await store.actions("joins", "1")
        turn = asked[asked.index("CompleteTask said") :][:5]
        assert turn[1::2] == ["CreateTask said#2", "CreateTask said#3"]
        async with engine_on(store, joins) as engine:
            assert await engine.run(joins, id="1") == ["a", "b"]

    run(main())


def test_a_step_has_the_stack_for_itself_however_deep_the_code_stands() -> None:
    @workflow(max_duration=None)
    async def digs(ctx: Context) -> int:
        async def down(left: int) -> int:
            return await (down(left - 1) if left else descends(sys.getrecursionlimit() // 2))

        await said("first")
        return await down(sys.getrecursionlimit() // 2)

    async def main() -> None:
        async with engine_on(VirtualStore(), digs) as engine:
            assert await engine.run(digs) == sys.getrecursionlimit() // 2

    run(main())


def test_a_step_arms_no_timer_of_the_code_that_asked_for_it() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @step
    async def arms(seconds: float) -> str:
        with pytest.raises(ForbiddenInWorkflow):
            loops[0].call_later(seconds, print)
        await asyncio.sleep(0)
        with pytest.raises(ForbiddenInWorkflow):
            loops[0].call_later(seconds, print)
        return "refused"

    @workflow(max_duration=None)
    async def shares(ctx: Context) -> str:
        loops.append(asyncio.get_running_loop())
        await said("first")
        return await arms(60)

    async def main() -> None:
        async with engine_on(VirtualStore(), shares) as engine:
            assert await engine.run(shares) == "refused"

    run(main())
