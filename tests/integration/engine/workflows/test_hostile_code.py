"""Workflow code that does what it should not: the engine and the other runs go on all the same."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import time
from typing import Any

import pytest

from perdure import Context, RunFailed, Signal, step, workflow
from perdure.engine.runs.coding import CodeMachine
from perdure.model.errors import Failure
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import run, settle
from tests.virtual.stores import VirtualStore

go = Signal("go", int)
seen: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    seen.clear()


@step
async def work(value: int) -> int:
    seen.append(value)
    return value


@workflow(max_duration=None)
async def good(ctx: Context) -> int:
    return await work(7)


@pytest.mark.rule("W-53")
@pytest.mark.parametrize("catches", [Exception, BaseException])
def test_code_that_catches_everything_sees_nothing_of_being_let_go_of(catches: Any) -> None:
    # scenario 116
    @workflow(max_duration=None)
    async def careful(ctx: Context) -> int:
        try:
            return await ctx.wait(go)
        except catches:
            seen.append("caught")
            return -1
        finally:
            seen.append("finally")

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, careful) as first:
            await first.start(careful, id="1")
            await asyncio.sleep(60)
            assert first._shell.live == {}
        async with engine_on(store, careful) as engine:
            started = engine.get(careful, "1")
            await started.signal(go, 5)
            assert await started.result() == 5

    run(main())


def test_an_engine_that_closes_while_code_cleans_up_changes_nothing_of_the_run() -> None:
    # scenario 39
    @step
    async def slow(value: int) -> int:
        await asyncio.sleep(10)
        seen.append(value)
        return value

    @workflow(max_duration=None)
    async def cleans(ctx: Context) -> int:
        try:
            await work(1)
            raise ValueError("no")
        finally:
            await slow(2)
            await work(3)

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, cleans, grace=0) as first:
            await first.start(cleans, id="1")
            await asyncio.sleep(5)
        assert seen == [1]
        assert (await store.describe("cleans", "1")).status == "running"
        async with engine_on(store, cleans) as second:
            with pytest.raises(RunFailed, match="no"):
                await second.get(cleans, "1").result()
        assert seen == [1, 2, 3]

    run(main())


def test_errors_of_all_kinds_end_the_run_and_not_the_engine() -> None:
    class Odd(BaseException):
        pass

    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("I will not be told")

    errors: list[BaseException] = [
        Odd("odd"), Unspeakable(), StopIteration(3), StopAsyncIteration(), GeneratorExit(),
        asyncio.InvalidStateError(), RecursionError(), MemoryError(),
        ExceptionGroup("g", [OSError()]),
        Failure("own", kind="own"),
    ]  # fmt: skip

    @workflow(max_duration=None)
    async def breaks(ctx: Context, number: int) -> None:
        try:
            await work(number)
        finally:
            raise errors[number]

    async def main() -> None:
        async with engine_on(VirtualStore(), breaks, good) as engine:
            for number, error in enumerate(errors):
                started = await engine.start(breaks, number, id=str(number))
                with pytest.raises(Failure):
                    await started.result(timeout=60)
                assert await started.status() == "failed", error
            assert await engine.run(good, id="good") == 7

    run(main())


def test_tasks_that_are_left_behind_end_with_the_run() -> None:
    @workflow(max_duration=None)
    async def leaves(ctx: Context) -> str:
        async def for_ever() -> None:
            try:
                await ctx.sleep("365d")
            finally:
                seen.append("ended")

        seen.append(asyncio.create_task(for_ever()))
        await work(1)
        return "done"

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, leaves) as engine:
            assert await engine.run(leaves, id="1") == "done"
            assert seen[-1] == "ended"
            assert "ResolveWait sleep" in await store.actions("leaves", "1")
            assert engine._shell.live == {}

    run(main())


@pytest.mark.parametrize("parked", [False, True])
def test_an_error_of_a_task_that_nobody_awaits_is_logged_once(
    parked: bool, caplog: pytest.LogCaptureFixture
) -> None:
    @workflow(max_duration=None)
    async def forgets(ctx: Context) -> str:
        async def breaks() -> None:
            raise ValueError("nobody looks")

        asyncio.create_task(breaks())  # noqa: RUF006
        await work(1)
        gc.collect()
        if parked:
            await ctx.wait(go)
        return "done"

    async def main() -> None:
        async with engine_on(VirtualStore(), forgets) as engine:
            started = await engine.start(forgets, id="1")
            if parked:
                await asyncio.sleep(60)
                assert engine._shell.live == {}
                await started.signal(go, 1)
            assert await started.result() == "done"

    with caplog.at_level(logging.INFO):
        run(main())
    gc.collect()
    told = [r for r in caplog.records if r.exc_info and "nobody looks" in str(r.exc_info[1])]
    assert len(told) == 1
    assert "forgets/1" in told[0].getMessage()


def test_cycles_and_the_garbage_collector_run_no_code_of_a_run_that_left_memory() -> None:
    @workflow(max_duration=None)
    async def cyclic(ctx: Context) -> int:
        me = asyncio.current_task()
        loop = [me]
        loop.append(loop)  # type: ignore[arg-type]

        async def numbers() -> Any:
            try:
                yield 1
            finally:
                await work(99)

        async for _ in numbers():
            try:
                await ctx.wait(go)
            finally:
                await work(98)
        return 1

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, cyclic) as engine:
            await engine.start(cyclic, id="1")
            await asyncio.sleep(60)
            assert engine._shell.live == {}
            gc.collect()
            await settle()
            assert seen == []
            left = [one for one in gc.get_objects() if type(one) is CodeMachine]
            assert [one for one in left if id(one) not in others] == []

    gc.collect()
    # Machines that other tests of this process have left in odd ways are not this one's.
    others = {id(one) for one in gc.get_objects() if type(one) is CodeMachine}
    run(main())


def test_threads_may_not_reach_into_a_workflow() -> None:
    @workflow(max_duration=None)
    async def threads(ctx: Context) -> str:
        loop = asyncio.get_running_loop()
        said: list[str] = []

        def reach() -> None:
            try:
                loop.call_soon_threadsafe(said.append, "reached")
            except RuntimeError as error:
                said.append(str(error))

        thread = threading.Thread(target=reach)
        thread.start()
        thread.join()
        try:
            await asyncio.to_thread(reach)
        except RuntimeError as error:
            said.append(str(error))
        return " ".join(said)

    async def main() -> None:
        async with engine_on(VirtualStore(), threads) as engine:
            said = await engine.run(threads, id="1")
            assert "no thread may reach into a workflow" in said
            assert "@step" in said

    run(main())


@pytest.mark.slow
def test_code_that_holds_the_loop_up_is_named_with_its_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # scenario 119
    @workflow(max_duration=None)
    async def blocks(ctx: Context) -> None:
        time.sleep(2.5)  # noqa: ASYNC251

    async def main() -> None:
        async with engine_on(VirtualStore(), blocks) as engine:
            await engine.run(blocks, id="1")

    with caplog.at_level(logging.WARNING):
        run(main())
    assert any("test_hostile_code.py" in record.getMessage() for record in caplog.records)


def test_the_same_workflow_in_many_runs_at_once_shares_nothing() -> None:
    @workflow(max_duration=None)
    async def own(ctx: Context, number: int) -> list[Any]:
        first = await work(number)
        await ctx.sleep(number % 3)
        return [first, ctx.id, await work(number + 1)]

    async def main() -> None:
        async with engine_on(VirtualStore(), own) as engine:
            runs = [await engine.start(own, n, id=str(n)) for n in range(50)]
            got: Any = await asyncio.gather(*(one.result() for one in runs))
            assert got == [[n, str(n), n + 1] for n in range(50)]

    run(main())
