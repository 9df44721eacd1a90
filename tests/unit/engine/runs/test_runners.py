"""Runners: the tasks that execute a run's attempts. No task per sequential step, none lost."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from perdure.engine.runs.runners import ForRow
from perdure.flow.step import step
from perdure.model.errors import Failure
from perdure.model.policy import Retry
from tests.virtual.engines import engine_on, graph, node, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_steps_in_sequence_are_executed_by_one_task(kind: type[VirtualStore]) -> None:
    seen: list[Any] = []

    @step
    async def work(waits: bool) -> None:
        seen.append(asyncio.current_task())
        if waits:
            await asyncio.sleep(1)

    chain = graph("chain", [task(f"n{i}", "work", {"waits": i % 2 == 0}) for i in range(10)])

    async def main() -> None:
        async with engine_on(kind(), chain, work) as engine:
            await engine.run(chain, id="1")
        assert len(seen) == 10
        assert len(set(seen)) == 1

    run(main())


def test_branches_run_at_the_same_time() -> None:
    @step
    async def work() -> None:
        await asyncio.sleep(10)

    fan = graph(
        "fan",
        [node("fork", "FORK"), *(task(f"n{i}", "work") for i in range(50)), node("join", "JOIN")],
        [*(f"fork n{i}" for i in range(50)), *(f"n{i} join" for i in range(50))],
    )

    async def main() -> None:
        async with engine_on(VirtualStore(), fan, work) as engine:
            await engine.run(fan, id="1")
            assert asyncio.get_running_loop().time() == 10

    run(main())


def test_a_run_that_waits_only_for_a_retry_keeps_no_task() -> None:
    @step(retry=Retry(2, initial="1h", max_delay="1h"))
    async def work() -> None:
        raise Failure("not yet")

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        async with engine_on(LateStore(), one, work, grace=600, park_after="2h") as engine:
            await engine.start(one, id="1")
            await asyncio.sleep(60)
            (live,) = engine._shell.live.values()
            assert live.runners == ()
            began = asyncio.get_running_loop().time()
        # Nothing is executing: closing has nothing to wait for.
        assert asyncio.get_running_loop().time() - began < 1

    run(main())


def test_a_long_run_that_never_waits_lets_others_have_their_turn() -> None:
    @step
    async def work() -> None:
        pass

    chain = graph("chain", [task(f"n{i}", "work") for i in range(500)])

    async def main() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with engine_on(VirtualStore(), chain, work) as engine:
            others = asyncio.ensure_future(other())
            await engine.run(chain, id="1")
            others.cancel()
        assert turns >= 5

    run(main())


def test_runs_are_referenced_strongly_while_nobody_holds_them() -> None:
    # scenario 89: the step waits for a future that only it refers to.
    @step
    async def work() -> str:
        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(10, done.set_result, None)
        await done
        return "alive"

    one = graph("one", [task("a", "work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, one, work) as engine:
            for i in range(20):
                await engine.start(one, id=f"r{i}")
            for _ in range(5):
                gc.collect()
                await asyncio.sleep(1)
            for i in range(20):
                assert await engine.get(one, f"r{i}").result() == {"a": "alive"}

    run(main())


@pytest.mark.rule("D-29", "G-104")
@pytest.mark.parametrize("waits", [False, True])
def test_a_step_that_cancels_its_own_task_harms_neither_its_run_nor_others(waits: bool) -> None:
    times = 0

    @step
    async def suicidal() -> str:
        nonlocal times
        times += 1
        me = asyncio.current_task()
        assert me is not None
        me.cancel()
        if waits:
            await asyncio.sleep(0)
        return "fine"

    @step
    async def after() -> str:
        await asyncio.sleep(1)
        return "after"

    chain = graph("chain", [task("suicidal"), task("after")])

    async def main() -> None:
        async with engine_on(LateStore(), chain, suicidal, after) as engine:
            started = await engine.start(chain, id="1")
            if not waits:
                assert await started.result() == {"after": "after"}
                assert times == 1
                return
            with pytest.raises(Failure, match="cancelled the task") as raised:
                await started.result()
            assert raised.value.kind == "CancelledError"
            assert times == 2

    run(main())


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("turns", [1, 2, 3])
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_what_a_step_leaves_behind_may_cancel_its_task_between_two_steps(
    kind: type[VirtualStore], turns: int, waits: bool
) -> None:
    @step
    async def work() -> None:
        if waits:
            await asyncio.sleep(0)
        later(turns, asyncio.current_task())

    def later(turns: int, task: Any) -> None:
        if turns:
            asyncio.get_running_loop().call_soon(later, turns - 1, task)
        else:
            task.cancel()

    # Long enough for the moments at which a runner has ended one step and has the next in hand.
    chain = graph("chain", [task(f"n{i}", "work") for i in range(200)])

    async def main() -> None:
        async with engine_on(kind(), chain, work) as engine:
            assert await engine.run(chain, id="1", timeout="1h") == {"n199": None}

    run(main())


@pytest.mark.rule("D-29")
def test_a_runner_that_is_cancelled_as_its_row_is_durable_leaves_what_that_starts_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    woken: list[Any] = []

    def wake(self: ForRow) -> None:
        own(self)
        woken.append(self.task.cancel())

    own = ForRow.wake
    monkeypatch.setattr(ForRow, "wake", wake)

    @step
    async def work() -> None:
        await asyncio.sleep(1)

    chain = graph("chain", [task(f"n{i}", "work") for i in range(5)])

    async def main() -> None:
        async with engine_on(LateStore(), chain, work) as engine:
            assert await engine.run(chain, id="1", timeout="1h") == {"n4": None}
        assert len(woken) >= 4

    run(main())


def test_no_runner_waits_for_the_row_that_ends_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    first: list[Any] = []

    def begin(self: ForRow) -> Any:
        first.append(self.runners)
        return own(self)

    own = ForRow.first
    monkeypatch.setattr(ForRow, "first", begin)

    @step
    async def work() -> None:
        await asyncio.sleep(1)

    def chain(length: int) -> Any:
        return graph(f"chain-{length}", [task(f"n{i}", "work") for i in range(length)])

    async def main() -> None:
        async with engine_on(LateStore(), chain(1), chain(2), work) as engine:
            await engine.run(chain(1), id="1")
            assert first == []
            await engine.run(chain(2), id="1")
            assert len(first) == 1

    run(main())


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_task_whose_cancelling_a_step_swallowed_is_not_used_again(
    kind: type[VirtualStore],
) -> None:
    seen: list[Any] = []

    @step
    async def stubborn() -> str:
        current = asyncio.current_task()
        assert current is not None
        seen.append(current)
        asyncio.get_running_loop().call_later(1, current.cancel)
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return "stays"
        raise AssertionError("it was not cancelled")

    @step
    async def after() -> int:
        current = asyncio.current_task()
        assert current is not None
        seen.append(current)
        await asyncio.sleep(1)
        return current.cancelling()

    chain = graph("chain", [task("stubborn"), task("after")])

    async def main() -> None:
        async with engine_on(kind(), chain, stubborn, after) as engine:
            assert await engine.run(chain, id="1") == {"after": 0}
        assert seen[0] is not seen[1]

    run(main())


def test_a_host_that_cancels_everything_records_no_failure() -> None:
    """asyncio.run cancels all tasks when its main one is over: no outcome of any step."""

    @step
    async def work() -> str:
        await asyncio.sleep(30)
        return "done"

    one = graph("one", [task("a", "work")])
    store = VirtualStore()

    async def forgetful() -> None:
        engine = engine_on(store, one, work)
        await engine.__aenter__()
        await engine.start(one, id="1")
        await asyncio.sleep(1)
        store.crash(engine._shell.worker)

    async def main() -> None:
        assert "FailTask a" not in await store.actions("one", "1")
        async with engine_on(store, one, work) as engine:
            assert await engine.get(one, "1").result() == {"a": "done"}

    run(forgetful())
    run(main())


def test_a_keyboard_interrupt_in_a_step_ends_the_program_and_the_run_goes_on_later() -> None:
    interrupt = True

    @step
    async def work() -> str:
        await asyncio.sleep(1)
        if interrupt:
            raise KeyboardInterrupt
        return "done"

    one = graph("one", [task("a", "work")])
    store = VirtualStore()

    async def main() -> Any:
        async with engine_on(store, one, work, grace=0) as engine:
            started = await engine.start(one, id="1", if_exists="join")
            return await started.result()

    with pytest.raises(KeyboardInterrupt):
        run(main())
    interrupt = False
    assert run(main()) == {"a": "done"}


def test_an_odd_exception_of_a_step_is_its_failure_and_the_engine_goes_on() -> None:
    class Odd(BaseException):
        pass

    @step
    async def work(odd: bool) -> None:
        if odd:
            raise Odd("no Exception at all")

    g = graph("g", [task("a", "work", {"odd": "{{input.odd}}"})])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, work) as engine:
            with pytest.raises(Failure, match="no Exception at all"):
                await engine.run(g, {"odd": True})
            assert await engine.run(g, {"odd": False}) == {"a": None}

    run(main())
