"""`def` steps on a SQLite file: threads that end, that do not, and what is recorded of them."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from perdure.client.engine import Engine
from perdure.engine.attempts.orders import EngineStep
from perdure.engine.handlers.queued import Queued
from perdure.engine.runs.runners import Runners
from perdure.flow.step import step
from perdure.model.errors import Canceled, TimedOut
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from perdure.saga.builder import Saga
from perdure.saga.context import SagaContext
from tests.virtual.crashing import outcomes, rows_of
from tests.virtual.engines import graph, node, task


class Doors:
    """What the steps wait for, so that no test waits for time."""

    def __init__(self) -> None:
        self.inside = threading.Semaphore(0)
        self.left = threading.Semaphore(0)
        self.open = threading.Event()
        self.attempts: list[int] = []
        self.told: list[bool] = []

    def pass_through(self) -> str:
        context = current_step()
        self.attempts.append(context.attempt)
        self.inside.release()
        assert self.open.wait(30)
        self.told.append(context.canceled)
        self.left.release()
        return f"attempt {context.attempt}"


@pytest.fixture
def doors() -> Doors:
    return Doors()


def url(folder: Path) -> str:
    return f"sqlite:///{folder / 'runs.db'}?sync=normal"


def program(doors: Doors, **options: Any) -> list[Any]:
    @step(name="wait", **options)
    def wait() -> str:
        return doors.pass_through()

    return [graph("g", [task("a", "wait")]), wait]


async def entered(doors: Doors) -> None:
    assert await asyncio.to_thread(doors.inside.acquire, timeout=30)


def test_branches_of_def_steps_run_in_threads_at_the_same_time(
    tmp_path: Path, doors: Doors
) -> None:
    @step
    def meet() -> int:
        place.wait(30)  # passes only when all four are here at once
        return threading.get_ident()

    place = threading.Barrier(4)
    names = [f"n{i}" for i in range(4)]
    g = graph("g", [node("f", "FORK"), *(task(n, "meet") for n in names)],
              [f"f {n}" for n in names])  # fmt: skip

    async def main() -> None:
        async with Engine(url(tmp_path), [g, meet], threads=4) as engine:
            threads = set((await engine.run(g)).values())
            assert len(threads) == 4
            assert threading.get_ident() not in threads

    asyncio.run(main())


def test_a_thread_that_ends_within_the_grace_period_is_recorded(
    tmp_path: Path, doors: Doors
) -> None:
    async def main() -> None:
        things = program(doors)
        async with Engine(url(tmp_path), things, grace=30) as engine:
            await engine.start(things[0], id="1")
            await entered(doors)
            asyncio.get_running_loop().call_later(0.01, doors.open.set)
        async with Engine(url(tmp_path), things) as engine:
            assert await engine.get("g", "1").result() == {"a": "attempt 1"}

    asyncio.run(main())
    assert doors.attempts == [1]


def test_a_thread_that_outlives_its_engine_is_told_and_its_result_is_not_taken(
    tmp_path: Path, doors: Doors
) -> None:
    # scenario 36
    async def main() -> None:
        things = program(doors)
        async with Engine(url(tmp_path), things, grace=0) as engine:
            await engine.start(things[0], id="1")
            await entered(doors)
        async with Engine(url(tmp_path), things) as engine:
            await entered(doors)
            doors.open.set()
            assert await engine.get("g", "1").result() == {"a": "attempt 1"}
            rows = await rows_of(engine._store, "g", "1")
            assert outcomes(rows) == {("a", 0)}

    asyncio.run(main())
    for _ in range(2):
        assert doors.left.acquire(timeout=30)
    assert doors.attempts == [1, 1]
    assert sorted(doors.told) == [False, True]


def test_a_thread_past_its_timeout_is_fenced_from_its_next_attempt(
    tmp_path: Path, doors: Doors
) -> None:
    # scenario 36
    from perdure.model.policy import Retry

    async def main() -> None:
        things = program(doors, timeout="50ms", retry=Retry(2, initial=0))
        async with Engine(url(tmp_path), things) as engine:
            started = await engine.start(things[0], id="1")
            with pytest.raises(TimedOut, match=r"attempt 2 of node a took longer than 0\.05 s"):
                await started.result()
            doors.open.set()
            assert outcomes(await rows_of(engine._store, "g", "1")) == {("a", 0), ("a", 1)}
            assert await started.status() == "failed"

    asyncio.run(main())


def crowd(folder: Path, doors: Doors, begun: list[str], *, threads: int = 2) -> Any:
    """An engine all of whose threads are taken by two calls that wait for the doors; `second` is a
    step that has half a second, from when it has a thread."""

    @step(name="wait", timeout=None)
    def wait() -> str:
        return doors.pass_through()

    @step(name="second", timeout="500ms", retry=Retry(1))
    def second(of: str) -> str:
        deadline = current_step().deadline
        assert deadline is not None
        begun.append(of)
        left = (deadline - datetime.now(UTC)).total_seconds()
        return "has its time" if 0 < left <= 0.5 else f"{left:g} s"

    first = graph("first", [task("a", "wait")])
    then = graph("then", [task("b", "second", {"of": "{{ input.of }}"})])
    return Engine(url(folder), [first, then, wait, second], threads=threads), first, then


def test_a_def_that_waits_for_a_thread_loses_none_of_its_time(
    tmp_path: Path, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    asked: set[Queued] = set()
    engine, first, then = crowd(tmp_path, doors, begun)

    async def main() -> None:
        all_asked = asyncio.Event()

        def left(of: Queued, limit: int) -> float:
            """Its time would be over by now."""
            asked.add(of)
            if len(asked) == 3:
                all_asked.set()
            return own(of, limit)

        own = Queued.left
        monkeypatch.setattr(Queued, "left", left)
        async with engine:
            busy = [await engine.start(first, id=str(n)) for n in range(2)]
            await entered(doors)
            await entered(doors)
            waiting = [await engine.start(then, {"of": str(n)}, id=str(n)) for n in range(3)]
            await asyncio.wait_for(all_asked.wait(), 30)
            assert begun == []
            doors.open.set()
            for run in waiting:
                assert await run.result() == {"b": "has its time"}
            for run in busy:
                await run.result()

    asyncio.run(main())
    assert sorted(begun) == ["0", "1", "2"]


def test_a_def_that_waits_for_a_thread_does_not_begin_when_its_engine_stops(
    tmp_path: Path, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    engine, first, then = crowd(tmp_path, doors, begun, threads=1)

    def stop(runners: Runners) -> None:
        stop_queued(runners)
        doors.open.set()  # now there is a thread

    stop_queued = Runners.stop_queued
    monkeypatch.setattr(Runners, "stop_queued", stop)

    async def main() -> None:
        waits = asyncio.Event()

        def queue(step: Any) -> Queued:
            waits.set()
            return own(step)

        own = EngineStep._queue
        monkeypatch.setattr(EngineStep, "_queue", queue)
        async with engine:
            await engine.start(first, id="1")
            await entered(doors)
            await engine.start(then, {"of": "x"}, id="1")
            await asyncio.wait_for(waits.wait(), 30)
        assert begun == []
        again, *_ = crowd(tmp_path, doors, begun, threads=1)
        async with again:
            assert await again.get(then, "1").result() == {"b": "has its time"}

    asyncio.run(main())


@pytest.mark.rule("D-18")
def test_a_def_that_waits_for_a_thread_does_not_begin_when_its_run_is_to_stop(
    tmp_path: Path, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def charge(ctx: SagaContext[str]) -> None:
        begun.append("charge")

    def refund(ctx: SagaContext[str]) -> None:
        begun.append("refund")

    @step(name="wait", timeout=None)
    def wait() -> str:
        return doors.pass_through()

    first = graph("first", [task("a", "wait")])
    pay = Saga("pay", str, max_duration="1h").step("charge", charge, undo=refund)

    async def main() -> None:
        waits = asyncio.Event()

        def queue(step: Any) -> Queued:
            waits.set()
            return own(step)

        own = EngineStep._queue
        monkeypatch.setattr(EngineStep, "_queue", queue)
        async with Engine(url(tmp_path), [first, pay, wait], threads=1) as engine:
            busy = await engine.start(first, id="1")
            await entered(doors)
            paid = await engine.start(pay, "ann", id="1")
            await asyncio.wait_for(waits.wait(), 30)
            await paid.cancel("enough")
            with pytest.raises(Canceled) as ended:
                await paid.result()
            assert ended.value.details == {"undone": [], "undo_failed": [], "unknown": []}
            doors.open.set()
            await busy.result()

    asyncio.run(main())
    assert begun == []
