"""Workflow code that will never come to an end, or ends more than itself, is told of in the log."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from perdure import Context, Signal, step, workflow
from perdure.engine.clock import SystemClock
from perdure.kernel.code.forbidden import ForbiddenInWorkflow
from perdure.stores.memory import MemoryStore
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

go = Signal("go", int)


@step
async def work() -> int:
    return 7


def told(caplog: pytest.LogCaptureFixture, part: str) -> list[str]:
    return [m for record in caplog.records if part in (m := record.getMessage())]


# ------------------------------------------------------------------ the process is ended


@workflow(max_duration=None)
async def leaves(ctx: Context, late: bool) -> None:
    if late:
        await work()
    raise SystemExit(5)


@workflow(max_duration=None)
async def leaves_in_a_task(ctx: Context, late: bool) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(leaves.fn(ctx, late))


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("definition", [leaves, leaves_in_a_task])
def test_code_that_ends_the_process_is_told_with_its_run_and_line(
    definition: Any, late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), definition) as engine:
            await (await engine.start(definition, late, id="1")).result()

    with pytest.raises(SystemExit) as ended:
        asyncio.run(main())
    assert ended.value.code == 5
    line = leaves.fn.__code__.co_firstlineno + 4
    (said,) = told(caplog, "ends the process")
    name = definition.name
    assert said.startswith(
        f"{name}/1: its code ends the process at line {line} of test_told.py: SystemExit(5)"
    )


@pytest.mark.parametrize("ending", [SystemExit, KeyboardInterrupt])
def test_a_run_whose_code_ended_the_process_goes_on_in_the_next_one(
    ending: type[BaseException],
) -> None:
    store = MemoryStore()
    ends = [True]

    @workflow(max_duration=None)
    async def once(ctx: Context) -> int:
        value = await work()
        if ends:
            ends.pop()
            raise ending
        return value

    async def first() -> None:
        async with engine_on(store, once, clock=SystemClock) as engine:
            await (await engine.start(once, id="1")).result()

    async def second() -> int:
        async with engine_on(store, once, clock=SystemClock) as engine:
            return await engine.get(once, "1").result(timeout=20)

    with pytest.raises(ending):
        asyncio.run(first())
    assert asyncio.run(second()) == 7


# ------------------------------------------------------------------ nothing can bring it on


@workflow(max_duration=None)
async def two_locks(ctx: Context) -> None:
    one, other = asyncio.Lock(), asyncio.Lock()

    async def both(first: asyncio.Lock, second: asyncio.Lock) -> None:
        async with first:
            await work()
            async with second:
                await work()

    await asyncio.gather(both(one, other), both(other, one))


@workflow(max_duration=None)
async def never_set(ctx: Context) -> None:
    await work()
    await asyncio.Event().wait()


@pytest.mark.parametrize("definition", [two_locks, never_set])
def test_a_run_that_nothing_can_bring_on_is_told_of_once(
    definition: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), definition) as engine:
            started = await engine.start(definition, id="1")
            for number in range(3):
                await asyncio.sleep(2)
                await started.signal(go, number)
            await asyncio.sleep(60)
            await started.cancel()
            await asyncio.sleep(60)
            assert await started.status() == "canceled"

    with caplog.at_level(logging.WARNING):
        run(main())
    first, *more = told(caplog, "waits for what nothing can bring")
    assert first.startswith(f"{definition.name}/1: its code waits")
    assert "of test_told.py" in first
    assert len(more) <= 1, "once more at the most, when it was parked and came back to be cancelled"
    assert told(caplog, "mend the code, and cancel the run")


def test_a_run_that_waits_for_a_call_a_timer_or_a_signal_is_not_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> int:
        await asyncio.sleep(30)
        event = asyncio.Event()
        asyncio.get_running_loop().call_later(30, event.set)
        await event.wait()
        await asyncio.gather(work(), ctx.sleep(5))
        return await ctx.wait(go)

    async def main() -> None:
        async with engine_on(VirtualStore(), waits) as engine:
            started = await engine.start(waits, id="1")
            await asyncio.sleep(100)
            await started.signal(go, 3)
            assert await started.result() == 3

    run(main())
    assert told(caplog, "nothing can bring") == []


# ------------------------------------------------------------------ reached into from outside

Release = Callable[[asyncio.AbstractEventLoop, asyncio.Future[int]], Any]


@pytest.mark.parametrize(
    "release",
    [
        lambda loop, future: future.set_result(5),
        lambda loop, future: future.set_exception(ValueError("no")),
        lambda loop, future: future.cancel(),
    ],
    ids=["result", "exception", "cancel"],
)
@pytest.mark.parametrize("inside", [False, True], ids=["at rest", "while it runs"])
def test_a_future_of_a_workflow_is_released_by_its_own_code_alone(
    release: Release, inside: bool
) -> None:
    refused: list[BaseException] = []
    waits: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[int]]] = []

    def reach() -> None:
        try:
            release(*waits[0])
        except BaseException as error:
            refused.append(error)

    def in_a_thread() -> None:
        thread = threading.Thread(target=reach)
        thread.start()
        thread.join()

    @workflow(max_duration=None)
    async def held(ctx: Context) -> int:
        loop = asyncio.get_running_loop()
        waits[:] = [(loop, loop.create_future())]

        async def look() -> int:
            return await waits[0][1]

        task = asyncio.create_task(look())
        await asyncio.sleep(0)
        if inside:
            in_a_thread()
        return await asyncio.wait_for(task, 60)

    async def main() -> None:
        async with engine_on(VirtualStore(), held) as engine:
            started = await engine.start(held, id="1")
            await asyncio.sleep(1)
            if not inside:
                in_a_thread()
            await started.cancel()
            await asyncio.sleep(120)
            assert await started.status() == "canceled"

    run(main())
    error, *again = refused  # the code that runs again reaches again
    assert {type(one) for one in refused} == {ForbiddenInWorkflow}
    assert inside or not again
    assert "let the thread's work be a @step that returns it, or send it by perdure.Signal" in str(
        error
    )


def test_a_loop_at_rest_takes_nothing_from_another_thread() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @workflow(max_duration=None)
    async def rests(ctx: Context) -> int:
        loops.append(asyncio.get_running_loop())
        return await ctx.wait(go)

    async def main() -> None:
        async with engine_on(VirtualStore(), rests) as engine:
            started = await engine.start(rests, id="1")
            await asyncio.sleep(1)
            future: asyncio.Future[int] = asyncio.Future(loop=loops[0])
            future.add_done_callback(lambda _: None)
            with ThreadPoolExecutor(1) as threads:
                for reach in (lambda: loops[0].call_soon(print), lambda: future.set_result(5)):
                    assert type(threads.submit(reach).exception()) is ForbiddenInWorkflow
            await started.signal(go, 3)
            assert await started.result() == 3

    run(main())


def test_a_step_may_not_release_what_its_workflow_waits_for() -> None:
    events: list[asyncio.Event] = []

    @step
    async def sets() -> str:
        await asyncio.sleep(1)
        try:
            events[0].set()
        except RuntimeError as error:
            return str(error)
        return "it was set"

    @workflow(max_duration=None)
    async def shares(ctx: Context) -> str:
        events.append(asyncio.Event())
        waiting = asyncio.create_task(events[0].wait())
        said = await sets()
        waiting.cancel()
        return said

    async def main() -> None:
        async with engine_on(VirtualStore(), shares) as engine:
            said = await engine.run(shares, id="1")
            assert "no thread and no step may reach into a workflow" in said

    run(main())
