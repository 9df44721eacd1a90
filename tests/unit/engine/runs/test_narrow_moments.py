"""What comes in the moment in which a run is taken, let go or given up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.model.policy import Retry
from perdure.stores.answers import LoadedRun, StartDone
from perdure.stores.rows import NEVER, NewRun, Park, WorkerInfo
from tests.virtual.engines import engine_on, graph, task, wait_for
from tests.virtual.loop import VirtualClock, run, settle
from tests.virtual.stores import LateStore, VirtualStore

begun: list[float] = []


@pytest.fixture(autouse=True)
def nothing_begun() -> None:
    begun.clear()


@step
async def slow() -> str:
    begun.append(asyncio.get_running_loop().time())
    await asyncio.sleep(5)
    return "done"


ONE = graph("one", [task("slow")])


class SlowLoads(VirtualStore):
    """Answers a load when told to, with the run as it is then."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()

    async def load(self, key: bytes) -> LoadedRun:
        self.asked.set()
        await self.gate.wait()
        return await super().load(key)


class SlowParks(VirtualStore):
    """Answers the first park when told to."""

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.gate = asyncio.Event()
        self.refuses = refuses

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        if self.gate.is_set():
            return await super().park(worker, parks)
        self.asked.set()
        await self.gate.wait()
        return [False] * len(parks) if self.refuses else await super().park(worker, parks)


def test_a_run_that_others_took_while_it_was_being_loaded_is_not_begun() -> None:
    """The rows that are read then stand behind the fence of the takeover: it would stop nobody."""

    async def main() -> None:
        store = SlowLoads()
        async with engine_on(store, ONE, slow) as engine:
            await engine.start(ONE, id="1", delay=1)
            await store.asked.wait()
            store.crash(engine._shell.worker)
            await store.register(WorkerInfo("other", "other", "host", 1))
            store._leases["other"] = NEVER
            [claim] = await store.claim_runs("other", ["one"], 1)
            store.gate.set()
            await asyncio.sleep(60)
            assert begun == []
            row = await store.describe("one", "1")
            assert (row.owner, row.epoch) == ("other", claim.epoch)

    run(main())


def test_a_cancel_that_comes_while_a_run_is_being_stalled_is_not_lost() -> None:
    # scenarios 23, 47
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, ONE, slow) as engine:
            started = await engine.start(ONE, id="1")
            await asyncio.sleep(1)
            [live] = engine._shell.live.values()
            store.holding = True
            live.stall("its code is gone")
            await settle()
            await started.cancel("not wanted")
            store.holding = False
            store.let_go()
            await asyncio.sleep(5)
            assert await started.status() == "canceled"

    run(main())


@pytest.mark.rule("G-86")
@pytest.mark.parametrize("by", ["timer", "deadline"])
def test_a_timer_whose_turn_comes_after_the_clock_was_set_back_fires_again(by: str) -> None:
    # scenario 40
    timed = wait_for("ok", "approved", "30s" if by == "timer" else None)
    g = graph("g", [timed], max_duration="30s" if by == "deadline" else "1h")
    clock: list[VirtualClock] = []

    def made() -> VirtualClock:
        clock.append(VirtualClock())
        return clock[-1]

    async def main() -> None:
        store = SlowParks(refuses=True)
        async with engine_on(store, g, clock=made) as engine:
            started = await engine.start(g, id="1")
            await store.asked.wait()
            await asyncio.sleep(25)  # it has fired, and waits for what becomes of the park
            for one in clock:
                one.skew -= 8_000_000
            store.gate.set()
            await asyncio.sleep(1)
            assert await started.status() == "running"
            await asyncio.sleep(10)
            assert await started.status() == "failed"

    run(main())


@pytest.mark.parametrize("refuses", [True, False])
def test_no_attempt_starts_while_its_run_is_being_let_go(refuses: bool) -> None:
    """It would be cut short, and made a second time by whoever claims the run."""

    @step(retry=Retry(2, initial=2))
    async def flaky() -> str:
        begun.append(asyncio.get_running_loop().time())
        if len(begun) == 1:
            raise ValueError("no")
        await asyncio.sleep(5)
        return "done"

    g = graph("g", [task("flaky")])

    async def main() -> None:
        store = SlowParks(refuses=refuses)
        async with engine_on(store, g, flaky, park_after=0) as engine:
            started = await engine.start(g, id="1")
            await store.asked.wait()
            await asyncio.sleep(3)
            assert len(begun) == 1
            store.gate.set()
            assert await started.result() == {"flaky": "done"}
        assert len(begun) == 2

    run(main())


def test_a_retry_given_up_twice_keeps_no_run_in_hand() -> None:
    """What is in hand is never given back by a beat."""

    class SlowGivesBack(LateStore):
        async def give_back(self, *args: Any) -> None:
            await asyncio.sleep(1)
            await super().give_back(*args)

    async def main() -> None:
        store = SlowGivesBack()
        async with engine_on(store, ONE, slow) as engine:
            started = await engine.start(ONE, id="1")
            await started.cancel()
            await asyncio.sleep(5)
            store.holding = True
            asked = asyncio.ensure_future(started.retry(failed=True))
            for _ in range(2):
                await asyncio.sleep(0.01)
                asked.cancel()
            await asyncio.wait([asked])
            assert engine._shell.in_hand == set()
            store.holding = False
            store.let_go()  # the row is written all the same, before the run is given back
            assert await started.result() == {"slow": "done"}

    run(main())


def test_a_run_whose_start_is_answered_late_is_not_given_back_meanwhile() -> None:
    class AnswersLate(LateStore):
        def start(self, runs: Sequence[NewRun], done: StartDone) -> None:
            loop = asyncio.get_running_loop()
            VirtualStore.start(self, runs, lambda answers: loop.call_later(100, done, answers))

    async def main() -> None:
        store = AnswersLate()
        async with engine_on(store, ONE, slow) as engine:
            started = await engine.start(ONE, id="1")
            row = await store.describe("one", "1")
            assert (row.owner, row.epoch) == (engine._shell.worker, 0)
            assert await started.result() == {"slow": "done"}
        assert len(begun) == 1

    run(main())
