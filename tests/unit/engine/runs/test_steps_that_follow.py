"""Steps that begin in the decision they follow from: what must be as if that were over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from typing import Any

import pytest

from perdure import Context, Retry, step, workflow
from perdure.client.engine import Engine
from perdure.kernel.code.forbidden import ForbiddenInWorkflow
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import VirtualLoop, run
from tests.virtual.stores import PromptStore, VirtualStore


@step
async def first() -> str:
    return "first"


@step
async def second() -> str:
    return "second"


@step
async def third() -> str:
    return "third"


def test_others_that_are_to_run_in_the_same_turn_do_so_before_it_is_over() -> None:
    @workflow(max_duration=None)
    async def meets(ctx: Context) -> list[str]:
        ready = asyncio.Event()

        async def opens() -> None:
            await first()
            ready.set()  # wakes the function, then the other task: they run in one turn

        async def joins() -> str:
            await ready.wait()
            return await third()

        async with asyncio.TaskGroup() as group:
            group.create_task(opens())
            joined = group.create_task(joins())
            await ready.wait()
            said = await second()
        await ctx.sleep(60)
        return [said, joined.result()]

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, meets) as engine:
            await engine.start(meets, id="1")
            await asyncio.sleep(1)
        asked = await store.actions("meets", "1")
        turn = asked[asked.index("CompleteTask first") :][:5]
        assert turn[1::2] == ["CreateTask second", "CreateTask third"]
        async with engine_on(store, meets) as engine:
            assert await engine.run(meets, id="1") == ["second", "third"]

    run(main())


class Stalling(PromptStore):
    """Its disk stands still for an hour in the middle of the `late`th row."""

    late = 0

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        super().commit(rows, done)
        if len(self.sent) == self.late:
            loop: Any = asyncio.get_running_loop()
            assert type(loop) is VirtualLoop
            loop._virtual += 3600


def test_a_lease_that_ended_while_the_row_was_written_lets_its_step_not_begin() -> None:
    held: list[bool] = []

    async def main() -> None:
        store = Stalling()
        async with engine_on(store, holds) as engine:
            engines[:] = [engine]
            store.late = 1
            await engine.run(holds, id="1")
        assert held == [True]

    engines: list[Engine] = []

    @step
    async def looks() -> None:
        shell = engines[0]._shell
        held.append(shell.clock.monotonic() < shell.lease_over)

    @workflow(max_duration=None)
    async def holds(ctx: Context) -> None:
        await first()
        await looks()

    run(main())


def test_a_step_cannot_cancel_the_task_that_asked_for_it() -> None:
    tasks: list[Any] = []

    @step
    async def reaches() -> str:
        try:
            tasks[-1].cancel()
        except ForbiddenInWorkflow:
            return "refused"
        return "cancelled"

    @workflow(max_duration=None)
    async def shares(ctx: Context) -> list[str]:
        tasks.append(asyncio.current_task())
        said = [await reaches(), await reaches()]
        return [*said, await first()]

    async def main() -> None:
        async with engine_on(VirtualStore(), shares) as engine:
            ended = await asyncio.wait_for(engine.run(shares, id="1"), 60)
        assert ended == ["refused", "refused", "first"]

    run(main())


class Interrupted(VirtualStore):
    """A signal comes while the row after so many is written."""

    left = -1

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        super().commit(rows, done)
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def test_an_interrupt_while_a_row_is_written_is_none_of_the_code_s() -> None:
    heard: list[BaseException] = []

    @workflow(max_duration=None)
    async def swallows(ctx: Context) -> None:
        await first()
        await second()
        try:
            await third()
        except GeneratorExit:
            raise
        except BaseException as error:
            heard.append(error)

    async def main() -> None:
        store = Interrupted()
        async with engine_on(store, swallows, grace=0) as engine:
            await engine.start(swallows, id="1")
            store.left = 2
            await asyncio.sleep(60)

    with pytest.raises(KeyboardInterrupt):
        run(main())
    assert heard == []


def test_code_that_will_not_end_is_told_of_where_a_step_lets_its_run_go(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engines: list[Engine] = []

    @step
    async def drops() -> None:
        shell = engines[0]._shell
        for live in list(shell.live.values()):
            shell.drop(live)

    async def stays(call: Callable[[], Awaitable[Any]]) -> None:
        while True:
            try:
                await call()
            except GeneratorExit:
                continue

    @workflow(max_duration=None)
    async def clings(ctx: Context) -> None:
        await first()
        await stays(drops)

    async def main() -> None:
        async with engine_on(VirtualStore(), clings, grace=0) as engine:
            engines[:] = [engine]
            await engine.start(clings, id="1")
            await asyncio.sleep(0.5)

    with caplog.at_level(logging.WARNING, "perdure.engine"):
        run(main())
    assert "its code would not end when it was let go of" in caplog.text


WHERE: ContextVar[str] = ContextVar("where", default="outside")


def test_what_is_asked_of_a_step_does_not_run_in_the_context_of_the_code() -> None:
    asked: list[str] = []

    def looks(error: Exception) -> bool:
        asked.append(WHERE.get())
        WHERE.set("where it is asked")
        return False

    @step(retry=Retry(2, retry_on=looks))
    async def fails() -> None:
        raise ValueError("no")

    @workflow(max_duration=None)
    async def sets(ctx: Context) -> str:
        WHERE.set("the code")
        await first()
        with pytest.raises(Exception, match="no"):
            await fails()
        return WHERE.get()

    async def main() -> None:
        async with engine_on(VirtualStore(), sets) as engine:
            assert await engine.run(sets, id="1") == "the code"
        assert asked == ["outside"]

    run(main())
