"""A step's coroutine lives in the run's task, and in a context of its own all the same."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, copy_context
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.model.step_context import current_step
from tests.virtual.attempts import Desk
from tests.virtual.engines import engine_on, graph, node, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

COLOR: ContextVar[str] = ContextVar("color", default="none")


@step
async def paint(color: str) -> list[str]:
    before = COLOR.get()
    COLOR.set(color)
    await asyncio.sleep(1)
    return [before, COLOR.get()]


def test_what_a_step_sets_in_its_context_is_seen_by_no_other_step() -> None:
    async def main() -> None:
        desk = Desk(paint)
        assert await desk.output(paint, "red") == ["none", "red"]
        assert await desk.output(paint, "blue") == ["none", "blue"]
        assert COLOR.get() == "none"

    run(main())


def test_a_function_may_give_anything_that_can_be_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    # As one that a decorator made, and marked as `async`.
    inner = paint.fn
    monkeypatch.setattr(paint, "_fn", lambda color: asyncio.ensure_future(inner(color)))

    async def main() -> None:
        assert await Desk(paint).output(paint, "red") == ["none", "red"]

    run(main())


def test_a_step_sees_what_was_set_where_the_engine_was_opened() -> None:
    g = graph("g", [task("a", "paint", {"color": "red"})])

    async def main() -> None:
        COLOR.set("of the application")
        async with engine_on(VirtualStore(), g, paint) as engine:
            assert await engine.run(g) == {"a": ["of the application", "red"]}

    run(main())


def test_steps_at_the_same_time_each_have_their_own_current_step() -> None:
    @step
    async def who() -> list[str]:
        seen = [current_step().node]
        for _ in range(5):
            await asyncio.sleep(1)
            seen.append(current_step().node)
        return sorted(set(seen))

    g = graph("g", [node("f", "FORK"), *(task(f"n{i}", "who") for i in range(5))],
              [f"f n{i}" for i in range(5)])  # fmt: skip

    async def main() -> None:
        async with engine_on(VirtualStore(), g, who) as engine:
            assert await engine.run(g) == {f"n{i}": [f"n{i}"] for i in range(5)}

    run(main())


def test_tasks_and_callbacks_that_a_step_starts_have_its_context() -> None:
    @step
    async def start() -> list[str]:
        COLOR.set("green")
        seen: list[str] = []
        asyncio.get_running_loop().call_soon(lambda: seen.append(COLOR.get()))

        async def inside() -> None:
            seen.append(COLOR.get() + current_step().node)

        await asyncio.gather(asyncio.ensure_future(inside()), asyncio.sleep(0))
        return seen

    assert run(Desk(start).output(start)) == ["green", "greenship"]


def test_asyncios_own_tools_work_inside_a_step() -> None:
    @step
    async def use() -> list[Any]:
        found: list[Any] = []
        try:
            async with asyncio.timeout(1):
                await asyncio.sleep(60)
        except TimeoutError:
            found.append("timeout")
        try:
            await asyncio.wait_for(asyncio.sleep(60), 1)
        except TimeoutError:
            found.append("wait_for")
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_fail())
                await asyncio.sleep(60)
        except* ValueError:
            found.append("group")
        lock = asyncio.Lock()
        async with lock:
            found.append(await asyncio.gather(_give(1), _give(2)))
        return found

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        assert await Desk(use).output(use) == ["timeout", "wait_for", "group", [1, 2]]
        assert task.cancelling() == 0

    run(main())


async def _fail() -> None:
    await asyncio.sleep(1)
    raise ValueError("in a task of the group")


async def _give(value: int) -> int:
    await asyncio.sleep(value)
    return value


def test_the_current_task_is_the_one_that_runs_the_attempt() -> None:
    @step
    async def look() -> bool:
        before = asyncio.current_task()
        await asyncio.sleep(1)
        return before is asyncio.current_task() and before in asyncio.all_tasks()

    assert run(Desk(look).output(look)) is True


def test_an_error_thrown_into_a_wait_reaches_the_step_and_can_be_handled() -> None:
    @step
    async def wait() -> str:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(1, future.set_exception, KeyError("thrown in"))
        try:
            await future
        except KeyError as error:
            return str(error)
        return "nothing came"

    assert run(Desk(wait).output(wait)) == "'thrown in'"


def test_async_generators_and_context_managers_are_left_in_order() -> None:
    seen: list[str] = []

    @step
    async def use() -> int:
        async def numbers() -> Any:
            try:
                for i in range(3):
                    await asyncio.sleep(0.1)
                    yield i
            finally:
                seen.append("closed")

        return sum([n async for n in numbers()])

    assert run(Desk(use).output(use)) == 3
    assert seen == ["closed"]


def test_a_dropped_attempt_runs_its_cleanup_before_the_next_one_begins() -> None:
    seen: list[str] = []

    @step
    async def careful() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(1)
            seen.append(current_step().node)

    async def main() -> None:
        attempt = asyncio.ensure_future(Desk(careful).report(careful))
        await asyncio.sleep(1)
        attempt.cancel()
        assert await attempt is None
        assert seen == ["ship"]

    run(main())


def test_a_coroutine_that_is_closed_closes_the_step_in_its_context() -> None:
    seen: list[str] = []

    @step
    async def wait() -> None:
        COLOR.set("mine")
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(COLOR.get())

    async def main() -> None:
        work = Desk(wait).report(wait)
        copy_context().run(work.send, None)
        work.close()
        assert seen == ["mine"]

    run(main())


@pytest.mark.parametrize("value", [StopIteration(1), StopAsyncIteration(2)])
def test_a_stop_iteration_of_a_step_is_a_failure_and_not_its_result(value: Exception) -> None:
    @step
    async def stop() -> None:
        raise value

    failure = run(Desk(stop).failure(stop))
    assert failure.kind in ("RuntimeError", "StopAsyncIteration")
