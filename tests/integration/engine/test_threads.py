"""`def` steps on a SQLite file: threads that end, that do not, and what is recorded of them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from perdure.client.engine import Engine
from perdure.flow.step import step
from perdure.model.errors import TimedOut
from perdure.model.step_context import current_step
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
