"""Calls that the code gives up before they began: in the turn that made them, or while the row that
records them is being written. They are never carried out, and the run goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from perdure import Context, Signal, Workflow, step, workflow
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
go = Signal("go", int)
done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@step
async def work(number: int) -> int:
    done.append(number)
    return number


@step
async def weigh(text: str) -> int:
    done.append(len(text))
    return len(text)


async def _fails() -> int:
    raise ValueError("no")


async def _is_there() -> int:
    return 9


async def _begun(*calls: Any) -> list[asyncio.Task[Any]]:
    tasks = [asyncio.create_task(call) for call in calls]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


@workflow(max_duration="1h")
async def cancels(ctx: Context) -> int:
    for task in await _begun(work(1), ctx.step(weigh, "x" * 9000)):
        task.cancel()
    return await work(2)


@workflow(max_duration="1h")
async def groups(ctx: Context) -> int:
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(work(1))
            group.create_task(_fails())
    except* ValueError:
        pass
    return await work(2)


@workflow(max_duration="1h")
async def races(ctx: Context) -> int:
    place, _ = await ctx.wait_any([work(1), _is_there()])
    return await work(place + 1)


@workflow(max_duration="1h")
async def leaves_behind(ctx: Context) -> int:
    async def tidies() -> None:
        try:
            await ctx.sleep(100)
        finally:
            await work(1)

    await _begun(tidies(), work(1))
    return 2


@workflow(max_duration="1h")
async def goes_on_as_new(ctx: Context, life: int) -> int:
    if life < 3:
        await _begun(work(1))
        ctx.continue_as_new(life + 1)
    return await work(2)


@workflow(max_duration="1h")
async def abandons_a_generator(ctx: Context) -> int:
    async def numbers() -> Any:
        try:
            while True:
                yield 2
        finally:
            await work(1)

    async for number in numbers():
        return int(number)
    return 0


@STORES
@pytest.mark.parametrize(
    ("definition", "input", "left"),
    [
        (cancels, None, [2]), (groups, None, [2]), (races, None, [2]), (leaves_behind, None, []),
        (goes_on_as_new, 1, [2]), (abandons_a_generator, None, []),
    ],
    ids=lambda one: one.name if isinstance(one, Workflow) else "",
)  # fmt: skip
def test_a_call_given_up_in_the_turn_that_made_it_is_never_carried_out(
    kind: Callable[[], VirtualStore],
    definition: Workflow[Any, Any],
    input: Any,
    left: list[int],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        async with engine_on(kind(), definition) as engine:
            assert await engine.run(definition, input, id="1", timeout=60) == 2
        assert done == left

    with caplog.at_level(logging.WARNING, "perdure.engine"):
        run(main())
    assert caplog.messages == []


@workflow(max_duration="1h")
async def gives_up_when_told(ctx: Context) -> int:
    first = await ctx.wait(go)
    task = asyncio.create_task(work(first))
    second = await ctx.wait(go["second"])
    task.cancel()
    return await work(second)


def test_a_call_given_up_while_its_row_is_being_written_is_never_carried_out() -> None:
    async def main() -> None:
        async with engine_on(LateStore(), gives_up_when_told) as engine:
            started = await engine.start(gives_up_when_told, id="1")
            await asyncio.sleep(1)
            await asyncio.gather(
                started.signal(go, 1), started.signal(go["second"], 2)
            )  # the second is there before the first one's row is durable
            assert await started.result(timeout=60) == 2
        assert done in ([2], [1, 2])

    run(main())
