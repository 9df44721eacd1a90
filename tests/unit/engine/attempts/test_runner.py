"""Runner: an attempt that waits is all there is in its task, and it is driven as by an `await`."""

from __future__ import annotations

import asyncio
import gc
import inspect
import io
import itertools
from contextvars import ContextVar
from types import CoroutineType
from typing import Any

import pytest

from perdure.engine.attempts.orders import Order
from perdure.engine.attempts.runner import Part, Runner
from perdure.engine.attempts.stepping import OVER
from perdure.engine.handlers.port import StepNotRegistered
from perdure.flow.step import step
from tests.virtual.engines import engine_on, graph, node, task
from tests.virtual.loop import VirtualLoop, run
from tests.virtual.stores import LateStore, VirtualStore

COLOR: ContextVar[str] = ContextVar("color", default="none")
STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])


def fan(step: str, width: int) -> Any:
    """So many nodes of this step at the same time."""
    return graph(
        "fan",
        [node("fork", "FORK"), *(task(f"n{i}", step) for i in range(width))],
        [f"fork n{i}" for i in range(width)],
    )


def coroutines_of_the_engine() -> int:
    """How many are suspended, or have not begun."""
    gc.collect()
    found = [thing for thing in gc.get_objects() if type(thing) is CoroutineType]
    return len([one for one in found if "perdure/engine" in one.cr_code.co_filename])


@STORES
def test_around_a_step_that_waits_no_coroutine_of_the_engine_stands(
    kind: type[VirtualStore],
) -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(10)

    async def main() -> None:
        wide = fan("work", 100)
        async with engine_on(kind(), wide, work) as engine:
            before = coroutines_of_the_engine()
            started = await engine.start(wide, id="1")
            await asyncio.sleep(5)
            (live,) = engine._shell.live.values()
            assert len(live.runners) == 100
            assert coroutines_of_the_engine() <= before + 5
            await started.result()

    run(main())


def test_a_task_shows_the_step_that_waits_in_it() -> None:
    seen: list[str] = []

    def state(task: Any) -> str:
        return inspect.getcoroutinestate(task.get_coro())

    @step
    async def sleepy() -> None:
        seen.append(state(asyncio.current_task()))
        await asyncio.sleep(10)
        seen.append(state(asyncio.current_task()))

    one = graph("one", [task("sleepy")])

    async def main() -> None:
        async with engine_on(VirtualStore(), one, sleepy) as engine:
            started = await engine.start(one, id="1")
            await asyncio.sleep(0.5)
            (live,) = engine._shell.live.values()
            (waits,) = live.runners
            assert "sleepy() running at" in repr(waits)
            assert state(waits) == inspect.CORO_SUSPENDED
            shown = io.StringIO()
            waits.print_stack(file=shown)
            assert "await asyncio.sleep(10)" in shown.getvalue()
            await started.result()
            assert state(waits) == inspect.CORO_CLOSED
        assert seen == [inspect.CORO_RUNNING, inspect.CORO_RUNNING]

    run(main())


def test_an_attempt_whose_task_is_left_behind_is_closed_in_its_own_context() -> None:
    seen: list[str] = []

    @step
    async def work() -> None:
        COLOR.set("mine")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            seen.append(COLOR.get())

    async def begin() -> Any:
        engine = engine_on(VirtualStore(), fan("work", 3), work)
        await engine.__aenter__()
        await engine.start(fan("work", 3), id="1")
        await asyncio.sleep(1)
        return engine

    loop = VirtualLoop()
    engine = loop.run_until_complete(begin())
    for runner in [one for live in engine._shell.live.values() for one in live.runners]:
        runner.get_coro().close()
    assert seen == ["mine"] * 3
    loop.run_until_complete(engine.__aexit__(None, None, None))
    loop.close()


class Once:
    """A part that waits once, for the next turn of the loop; then `after` is next."""

    def __init__(self, seen: list[Any], after: Part | None = None) -> None:
        self.seen = seen
        self.after = after

    def first(self) -> None:
        self.seen.append("first")

    def send(self, value: Any) -> Any:
        self.seen.append("over")
        return OVER

    def throw(self, error: BaseException) -> Any:
        self.seen.append(type(error).__name__)
        return OVER

    def close(self) -> None:
        self.seen.append("closed")

    def following(self) -> Part | None:
        return self.after


def test_one_that_nobody_refers_to_is_closed() -> None:
    seen: list[str] = []

    async def part() -> Part | None:
        try:
            await asyncio.sleep(0)
        finally:
            seen.append("closed by itself")
        raise AssertionError("it does not go on")

    async def end() -> Part | None:
        return Once(seen)

    runner = Runner(part())
    runner.send(None)
    del runner
    assert seen == ["closed by itself"]
    runner = Runner(end())
    runner.send(None)
    del runner
    assert seen[1:] == ["first", "closed"]


@pytest.mark.parametrize("cancelled", [False, True])
def test_it_goes_on_with_what_follows_each_part_and_ends_with_the_last(cancelled: bool) -> None:
    seen: list[Any] = []

    async def begin() -> Part | None:
        return Once(seen, Once(seen))

    async def main() -> None:
        running = asyncio.ensure_future(Runner(begin()))
        await asyncio.sleep(0)
        assert seen == ["first"]
        if cancelled:
            running.cancel()
        assert await running is None
        assert seen == ["first", "CancelledError" if cancelled else "over", "first", "over"]

    run(main())


def test_what_is_no_attempt_may_raise_what_it_likes() -> None:
    async def part(error: BaseException) -> None:
        await asyncio.sleep(0)
        raise error

    async def main() -> None:
        with pytest.raises(ValueError, match="odd"):
            await asyncio.ensure_future(Runner(part(ValueError("odd"))))

    run(main())


def test_it_is_run_by_a_task_and_not_awaited() -> None:
    async def main() -> None:
        async def part() -> None:
            raise AssertionError("it does not begin")

        inner = part()
        with pytest.raises(TypeError, match="a task runs this"):
            await Runner(inner)
        inner.close()

    run(main())


@STORES
def test_an_attempt_that_cannot_go_on_after_it_waited_stalls_its_run(
    kind: type[VirtualStore], caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody works on a run that stalls, and whoever waits for it is told."""
    orders: list[Order] = []

    @step
    async def work() -> None:
        await asyncio.sleep(1)
        raise StepNotRegistered("it is gone", "work", orders[0])

    one = graph("one", [task("work")])

    async def main() -> None:
        async with engine_on(kind(), one, work) as engine:
            engine._shell.dispatcher.on_started = orders.append
            started = await engine.start(one, id="1")
            await asyncio.sleep(5)
            assert (await started.describe()).stalled == "it is gone"

    run(main())


@STORES
@pytest.mark.parametrize("between", [0, 1, 3])
def test_what_begins_beside_an_attempt_that_waits_does_not_wait_for_it(
    kind: type[VirtualStore], between: int
) -> None:
    @step
    async def sleepy() -> None:
        await asyncio.sleep(10)

    @step
    async def quick() -> None:
        pass

    chain = ["first", *(f"quick{i}" for i in range(between)), "fork"]
    wide = graph(
        "wide",
        [
            task("first", "sleepy"),
            *(task(name, "quick") for name in chain[1:-1]),
            node("fork", "FORK"),
            *(task(f"n{i}", "sleepy") for i in range(3)),
        ],
        [
            *(f"{a} {b}" for a, b in itertools.pairwise(chain)),
            *(f"fork n{i}" for i in range(3)),
        ],
    )

    async def main() -> None:
        async with engine_on(kind(), wide, sleepy, quick) as engine:
            await engine.run(wide, id="1")
            assert asyncio.get_running_loop().time() < 21

    run(main())


def test_a_runner_that_an_interrupt_kept_from_being_made_goes_quietly() -> None:
    unmade = Runner.__new__(Runner)
    assert unmade.cr_frame is None
    unmade.close()
