"""SharedRunner: attempts of all runs begin in one task, and one that waits keeps it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import pytest

from perdure.engine.runs.shared_runner import SharedRunner
from perdure.engine.spawned import Spawned
from perdure.flow.step import step
from tests.virtual.engines import engine_on, graph, node, task, wait
from tests.virtual.loop import VirtualLoop, run
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
SOMETHING: ContextVar[str] = ContextVar("something", default="nothing")


@STORES
def test_steps_that_never_wait_share_a_task_also_over_runs(kind: type[VirtualStore]) -> None:
    seen: list[Any] = []

    @step
    async def work() -> None:
        seen.append(asyncio.current_task())

    chain = graph("chain", [task(f"n{i}", "work") for i in range(5)])

    async def main() -> None:
        async with engine_on(kind(), chain, work) as engine:
            await asyncio.gather(*(engine.run(chain, id=str(i)) for i in range(20)))
        assert len(seen) == 100
        assert len(set(seen)) == 1

    run(main())


@STORES
def test_a_step_that_waits_keeps_its_task_and_the_others_go_on(kind: type[VirtualStore]) -> None:
    ended: list[tuple[float, str]] = []
    tasks: dict[str, Any] = {}

    @step
    async def work(name: str, seconds: float) -> None:
        tasks[name] = asyncio.current_task()
        if seconds:
            await asyncio.sleep(seconds)
            assert asyncio.current_task() is tasks[name]
        ended.append((asyncio.get_running_loop().time(), name))

    def one(name: str, seconds: float) -> Any:
        return graph(name, [task("a", "work", {"name": name, "seconds": seconds})])

    graphs = [one("slow", 9), one("first", 0), one("slower", 10), one("second", 0)]

    async def main() -> None:
        async with engine_on(kind(), *graphs, work) as engine:
            await asyncio.gather(*(engine.run(graph, id="1") for graph in graphs))
        times = {name: time for time, name in ended}
        assert max(times["first"], times["second"]) < 1
        assert (9 <= times["slow"] < 9.5, 10 <= times["slower"] < 10.5) == (True, True)
        assert tasks["slow"] is not tasks["slower"]

    run(main())


@pytest.mark.parametrize("width", [1, 2, 3, 200])
def test_attempts_that_all_wait_all_begin_at_once(width: int) -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(10)

    fan = graph(
        "fan",
        [node("fork", "FORK"), *(task(f"n{i}", "work") for i in range(width))],
        [f"fork n{i}" for i in range(width)],
    )

    async def main() -> None:
        async with engine_on(VirtualStore(), fan, work) as engine:
            await asyncio.gather(*(engine.run(fan, id=str(i)) for i in range(3)))
            assert asyncio.get_running_loop().time() == 10
            assert len(engine._shell.tasks) <= len(engine._shell.live) + 5, "none is left over"

    run(main())


def test_a_step_that_cancels_the_task_it_began_in_harms_no_other_run() -> None:
    made: list[str] = []

    @step
    async def harmful() -> None:
        made.append("harmful")
        current = asyncio.current_task()
        assert current is not None
        current.cancel()

    @step
    async def harmless(name: str) -> None:
        made.append(name)

    graphs = [
        graph("before", [task("a", "harmless", {"name": "before"})]),
        graph("harm", [task("a", "harmful")]),
        graph("after", [task("a", "harmless", {"name": "after"})]),
    ]

    async def main() -> None:
        async with engine_on(VirtualStore(), *graphs, harmful, harmless) as engine:
            await asyncio.gather(*(engine.run(graph, id="1") for graph in graphs))
        assert made == ["before", "harmful", "after"]

    run(main())


@STORES
def test_a_step_that_cancels_its_task_and_takes_that_back_harms_no_other_run(
    kind: type[VirtualStore],
) -> None:
    """Up to Python 3.12 the next wait in the task raises CancelledError all the same."""

    @step
    async def harmful() -> None:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        current.uncancel()

    @step
    async def harmless() -> str:
        await asyncio.sleep(1)
        return "well"

    harm, other = graph("harm", [task("harmful"), task("harmless")]), graph("o", [task("harmless")])

    async def main() -> None:
        async with engine_on(kind(), harm, other, harmful, harmless) as engine:
            ends = await asyncio.gather(*(engine.run(one, id="1") for one in (harm, other)))
            assert ends == [{"harmless": "well"}] * 2

    run(main())


def test_a_shared_task_that_is_cancelled_before_it_begins_is_replaced() -> None:
    @step
    async def work() -> str:
        return "done"

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        async with engine_on(VirtualStore(), one, work) as engine:
            before = asyncio.all_tasks()
            first = await engine.start(one, id="1")
            [shared] = asyncio.all_tasks() - before
            shared.cancel()
            async with asyncio.timeout(60):
                assert await first.result() == {"a": "done"}
                assert await engine.run(one, id="2") == {"a": "done"}

    run(main())


@pytest.mark.rule("D-29")
def test_where_the_end_of_the_process_is_caught_other_runs_go_on() -> None:
    @step
    async def fatal_step() -> None:
        raise SystemExit(3)

    @step
    async def work() -> str:
        return "done"

    fatal = graph("fatal", [wait("w", "1s"), task("a", "fatal-step")])
    one = graph("one", [wait("w", "1s"), task("work")])

    async def begin() -> Any:
        engine = engine_on(VirtualStore(), fatal, one, fatal_step, work, grace=0)
        await engine.__aenter__()
        await engine.start(fatal, id="1")
        return engine, [await engine.start(one, id=str(i)) for i in range(3)]

    async def end(engine: Any, started: list[Any]) -> None:
        async with asyncio.timeout(60):
            assert [await one.result() for one in started] == [{"work": "done"}] * 3
        assert [live.runners for live in engine._shell.live.values()] == [()]
        await engine.__aexit__(None, None, None)

    loop = VirtualLoop()
    try:
        engine, started = loop.run_until_complete(begin())
        with pytest.raises(SystemExit):
            loop.run_until_complete(asyncio.sleep(2))
        loop.run_until_complete(end(engine, started))
    finally:
        loop.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="there are no eager tasks before")
@STORES
def test_a_loop_whose_tasks_begin_at_once_changes_nothing(kind: type[VirtualStore]) -> None:
    @step
    async def work(seconds: float) -> None:
        if seconds >= 0:
            await asyncio.sleep(seconds)

    chain = graph("chain", [task(f"n{i}", "work", {"seconds": i % 3 - 1}) for i in range(9)])
    fan = graph(
        "fan",
        [node("f", "FORK"), *(task(f"n{i}", "work", {"seconds": i % 3 - 1}) for i in range(90))],
        [f"f n{i}" for i in range(90)],
    )

    async def main() -> None:
        factory: Any = vars(asyncio)["eager_task_factory"]
        asyncio.get_running_loop().set_task_factory(factory)
        async with engine_on(kind(), chain, fan, work) as engine:
            runs = [engine.run(one, id=str(i)) for i in range(5) for one in (chain, fan)]
            await asyncio.wait_for(asyncio.gather(*runs), 60)

    run(main())


def test_the_context_variables_of_whoever_starts_a_run_are_not_its_steps() -> None:
    seen: list[str] = []

    @step
    async def work() -> None:
        seen.append(SOMETHING.get())
        SOMETHING.set("set by a step")
        await asyncio.sleep(1)

    chain = graph("chain", [task("a", "work"), task("b", "work")])

    async def main() -> None:
        async with engine_on(VirtualStore(), chain, work) as engine:
            SOMETHING.set("the caller's")
            await asyncio.gather(*(engine.run(chain, id=str(i)) for i in range(3)))
        assert set(seen) == {"nothing"}

    run(main())


def test_what_has_not_begun_when_the_engine_closes_is_done_by_the_next_one() -> None:
    made: list[int] = []

    @step
    async def work() -> None:
        made.append(1)

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, one, work, grace=0) as engine:
            for i in range(5):
                await engine.start(one, id=str(i))
            engine._shell.stopping = True  # before the shared task had its turn
        assert made == []
        async with engine_on(store, one, work) as engine:
            await asyncio.gather(*(engine.get(one, str(i)).result() for i in range(5)))
        assert len(made) == 5

    run(main())


def test_an_attempt_that_has_not_begun_when_its_run_is_paused_does_not() -> None:
    made: list[float] = []

    @step
    async def work() -> None:
        made.append(asyncio.get_running_loop().time())

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        async with engine_on(VirtualStore(), one, work) as engine:
            started = await engine.start(one, id="1")
            await started.pause()
            await asyncio.sleep(5)
            assert made == []
            await started.unpause()
            await started.result()
        assert made[0] >= 5

    run(main())


def test_a_task_that_a_stranger_cancels_before_it_began_is_made_anew() -> None:
    made: list[str] = []

    @step
    async def work() -> None:
        made.append("work")

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        async with engine_on(VirtualStore(), one, work) as engine:
            started = await engine.start(one, id="1")
            for free in engine._shell.shared_runner._free:
                free.cancel()
            await started.result()
            for free in engine._shell.shared_runner._free:  # it waits now
                free.cancel()
            await engine.run(one, id="2")
        assert made == ["work", "work"]

    run(main())


def test_a_run_that_is_being_let_go_is_not_asked_for_attempts_again_and_again() -> None:
    made: list[float] = []

    @step
    async def work() -> None:
        made.append(asyncio.get_running_loop().time())

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        async with engine_on(VirtualStore(), one, work) as engine:
            started = await engine.start(one, id="1")
            [live] = engine._shell.live.values()
            live.parking = True  # many runs are in memory, and this one was paused just now
            async with asyncio.timeout(60):
                await asyncio.sleep(1)  # time does not pass while somebody has something to do
            assert made == []
            live.parking = False  # there was mail
            live.pump()
            await started.result()
            assert made == [1]

    run(main())


class Begins:
    """A run whose attempts do not wait: what each does. After one it has had its turn."""

    orders = ()
    queued = False

    def __init__(self, shared: Any, *attempts: Callable[[], object]) -> None:
        self.shared = shared
        self.attempts = list(attempts)

    def advance(self, *_: object) -> None:
        self.attempts.pop(0)()
        if self.attempts:
            self.shared.take(self)


def nothing() -> None:
    return None


def test_a_task_that_is_called_where_another_was_quicker_waits_on() -> None:
    async def main() -> None:
        tasks = Spawned()
        shell: Any = SimpleNamespace(spawn=tasks.spawn, tasks=tasks, stopping=False)
        shared: Any = SharedRunner(shell)
        later = Begins(shared, nothing)

        def comes_later() -> None:
            asyncio.get_running_loop().call_soon(shared.take, later)

        shared._spawn()
        shared._spawn()
        for one in Begins(shared, nothing, nothing), Begins(shared, comes_later, nothing):
            shared.take(one)
        await asyncio.sleep(1)
        assert not later.attempts
        assert [task.done() for task in shared._free] == [False], "one is there for what comes"
        await tasks.end()

    run(main())
