"""Runs whose code cannot go on: they stall, say why, and go on with code that can."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Context, Signal, step, workflow
from perdure.client.run import Run
from perdure.flow.workflow import Workflow
from tests.virtual.engines import client_on, engine_on, killed
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

go = Signal("go", int)


@step
async def charge(amount: int) -> int:
    return amount


@step
async def ship(amount: int) -> int:
    return amount


def order(function: Any) -> Workflow[Any, Any]:
    return workflow(max_duration=None, name="order")(function)


@order
async def charges(ctx: Context) -> str:
    await charge(1)
    await ctx.wait(go)
    return "charged"


@order
async def ships(ctx: Context) -> str:
    await ship(1)
    await ctx.wait(go)
    return "shipped"


async def why(started: Run[Any]) -> str:
    """Why the run stalled."""
    for _ in range(100):
        info = await started.describe()
        if info.stalled:
            return str(info.stalled)
        await asyncio.sleep(1)
    raise AssertionError("the run did not stall")


@pytest.mark.rule("W-28")
def test_a_run_whose_code_was_changed_stalls_and_goes_on_with_the_code_that_it_knows() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with killed(store, charges) as first:
            await first.start(charges, id="1")
            await asyncio.sleep(30)
        async with engine_on(store, ships) as second:
            started = second.get(ships, "1")
            await started.signal(go, 1)
            said = await why(started)
            assert "charge(1)" in said
            assert "ship(1)" in said
            assert "ctx.patched()" in said
            before = await store.actions("order", "1")
            await asyncio.sleep(60)
            assert await store.actions("order", "1") == before, "nothing is written meanwhile"
        async with engine_on(store, charges) as third:
            assert await third.get(charges, "1").result() == "charged"

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_hot_loop_stalls_its_run_and_no_other(kind: type[VirtualStore]) -> None:
    @workflow(max_duration=None)
    async def spins(ctx: Context) -> None:
        await charge(1)
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def main() -> None:
        async with engine_on(kind(), spins, charges) as engine:
            started = await engine.start(spins, id="1")
            said = await why(started)
            assert said.startswith("hot loop at line ")
            assert "test_stalls.py" in said
            other = await engine.start(charges, id="2")
            await other.signal(go, 1)
            assert await other.result() == "charged"

    run(main())


def test_a_hot_loop_at_the_first_line_stalls_where_it_was_started_and_where_it_was_not() -> None:
    @workflow(max_duration=None)
    async def spins(ctx: Context) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, spins) as engine:
            assert "hot loop" in await why(await engine.start(spins, id="1"))
            await client_on(store).start(spins, id="2")
            assert "hot loop" in await why(engine.get(spins, "2"))

    run(main())


@pytest.mark.rule("W-55")
def test_a_run_started_by_a_process_without_the_code_is_executed_by_a_worker_with_it() -> None:
    ran: list[int] = []

    @step
    async def counted() -> int:
        ran.append(1)
        return len(ran)

    @workflow(max_duration=None)
    async def counts(ctx: Context) -> int:
        return await counted()

    async def main() -> None:
        store = VirtualStore()
        started = await client_on(store).start(counts, id="1")
        await asyncio.sleep(10)
        assert await started.status() == "running"
        assert ran == []
        async with engine_on(store, counts) as engine:
            assert await engine.get(counts, "1").result() == 1
            assert await started.result() == 1

    run(main())


@pytest.mark.rule("W-55")
def test_a_worker_without_the_code_leaves_the_run_to_one_with_it() -> None:
    @workflow(max_duration=None)
    async def other(ctx: Context) -> None:
        pass

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, other):
            started = await client_on(store).start(charges, id="1")
            await started.signal(go, 1)
            await asyncio.sleep(10)
            assert await started.status() == "running"
            async with engine_on(store, charges):
                assert await started.result() == "charged"

    run(main())


def test_a_new_version_of_the_code_takes_over_runs_of_the_old_one_where_it_does_the_same() -> None:
    def version(number: str, extra: Any) -> Workflow[Any, Any]:
        @workflow(max_duration=None, name="order", version=number)
        async def made(ctx: Context) -> list[int]:
            got = [await charge(1)]
            await ctx.wait(go)
            return got + await extra(ctx)

        return made

    async def old(ctx: Context) -> list[int]:
        return [await ship(1)]

    async def new(ctx: Context) -> list[int]:
        return [await ship(2)] if ctx.patched("bigger") else [await ship(1)]

    async def main() -> None:
        store = VirtualStore()
        one, two = version("1", old), version("2", new)
        async with killed(store, one) as first:
            await first.start(one, id="1")
            await asyncio.sleep(30)
        async with engine_on(store, two) as second:
            started = second.get(two, "1")
            await started.signal(go, 1)
            assert await started.result() == [1, 2]
            assert await started.status() == "completed"

    run(main())


def test_a_step_that_its_code_does_not_have_any_more_fails_with_a_clear_message() -> None:
    def asks(step_called: Any) -> Workflow[Any, Any]:
        @order
        async def made(ctx: Context) -> int:
            value: int = await step_called(5)
            return value

        return made

    @step(name="work", timeout=None)
    async def slow(amount: int) -> int:
        await asyncio.sleep(3600)
        return amount

    @step(name="work")
    async def renamed(total: int, extra: int) -> int:
        return total + extra

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, asks(slow)) as first:
            await first.start(asks(slow), id="1")
            await asyncio.sleep(5)
        async with engine_on(store, asks(renamed)) as second:
            said = await why(second.get(asks(renamed), "1"))
            assert "work" in said

    run(main())
