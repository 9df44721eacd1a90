"""Beats: a worker keeps what is its own, gives back what it does not hold, and obeys its lease."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.model.errors import StoreError
from perdure.stores.answers import Beat
from perdure.stores.rows import WorkerInfo
from tests.virtual.engines import engine_on, graph, task, wait_for
from tests.virtual.loop import VirtualClock, run
from tests.virtual.stores import LateStore, VirtualStore

made: list[str] = []


@pytest.fixture(autouse=True)
def nothing_made() -> None:
    made.clear()


def now() -> float:
    return asyncio.get_running_loop().time()


@step(timeout=None)
async def slow(name: str = "slow", seconds: float = 100) -> str:
    made.append(name)
    await asyncio.sleep(seconds)
    return name


CHAIN = graph("chain", [task(n, "slow", {"name": n, "seconds": 20}) for n in "abc"])
ONE = graph("one", [wait_for("ok", "approved")])


class Silent(VirtualStore):
    """Beats of the workers in `deaf` do not reach it."""

    def __init__(self) -> None:
        super().__init__()
        self.deaf: set[str] = set()

    async def beat(self, worker: str) -> Beat:
        if worker in self.deaf:
            raise StoreError("the network is away")
        return await super().beat(worker)

    def extend(self, worker: str) -> bool:
        return False


def test_a_worker_that_was_declared_dead_drops_its_runs_and_begins_anew() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, CHAIN, slow) as engine:
            started = await engine.start(CHAIN, id="1")
            before = engine._shell.worker
            await asyncio.sleep(5)
            store.crash(before)
            assert await started.result() == {"c": "c"}
            assert engine._shell.worker != before
            assert engine._shell.worker in store._leases
            assert before not in store._leases
        assert made == ["a", "a", "b", "c"]
        actions = await store.actions("chain", "1")
        assert actions.count("Claimed") == 1

    run(main())


def test_nothing_is_recorded_by_a_worker_that_others_took_over_from() -> None:
    # scenarios 84, 93, 97: stopped past its lease, it comes back with a result
    async def main() -> None:
        store = Silent()
        async with engine_on(store, CHAIN, slow) as zombie:
            started = await zombie.start(CHAIN, id="1")
            await asyncio.sleep(15)
            store.deaf.add(zombie._shell.worker)
            async with engine_on(store, CHAIN, slow) as other:
                assert await other.get(CHAIN, "1").result() == {"c": "c"}
                worker = other._shell.worker
            store.deaf.clear()
            await asyncio.sleep(60)
            assert await started.status() == "completed"
        journal = (await store.load((await store.describe("chain", "1")).key)).journal
        taken = next(i for i, row in enumerate(journal) if b'"Claimed"' in row.body)
        assert {row.writer for row in journal[taken:]} == {worker}

    run(main())


def test_no_attempt_starts_once_the_lease_may_be_over_and_it_goes_on_when_it_is_not() -> None:
    g = graph("chain", [task(n, "slow", {"name": n, "seconds": 30}) for n in "abc"])

    async def main() -> None:
        store = Silent()
        async with engine_on(store, g, slow) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(15)
            store.deaf.add(engine._shell.worker)
            await asyncio.sleep(200)
            # a and b began within the lease; c would have begun after it.
            assert made == ["a", "b"]
            assert "CompleteTask b" in await store.actions("chain", "1"), "decisions may go on"
            store.deaf.clear()
            assert await started.result() == {"c": "c"}
        assert made == ["a", "b", "c"]

    run(main())


def test_a_worker_that_cannot_register_anew_holds_nothing_until_it_can() -> None:
    class Closed(VirtualStore):
        closed = False
        tries = 0

        async def register(self, worker: WorkerInfo) -> int:
            if self.closed:
                self.tries += 1
                raise StoreError("the disk is full")
            return await super().register(worker)

    async def main() -> None:
        store = Closed()
        async with engine_on(store, CHAIN, slow, poll=1) as engine:
            await engine.start(CHAIN, id="1")
            await asyncio.sleep(5)
            store.closed = True
            before = engine._shell.worker
            store.crash(before)
            await asyncio.sleep(5)
            assert engine._shell.worker == before, "no name that the store does not know"
            assert engine._shell.live == {}
            await engine.start(CHAIN, id="2")
            await asyncio.sleep(30)
            assert store.tries > 3
            assert (await store.describe("chain", "2")).owner is None
            assert made == ["a"]
            store.closed = False
            for id in ("1", "2"):
                assert await engine.get(CHAIN, id).result() == {"c": "c"}
            assert engine._shell.worker != before
        assert (await store.actions("chain", "2")).count("Claimed") == 0

    run(main())


def test_a_worker_goes_on_beating_when_looking_for_runs_to_park_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from perdure.engine.worker.parking import Parking

    def broken(self: Any) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        store = VirtualStore()
        monkeypatch.setattr(Parking, "look", broken)
        async with engine_on(store, CHAIN, slow) as engine:
            assert await engine.run(CHAIN, id="1") == {"c": "c"}
            assert store._leases[engine._shell.worker] > store.now()

    run(main())


def test_nothing_is_claimed_once_the_lease_may_be_over() -> None:
    async def main() -> None:
        store = Silent()
        async with engine_on(store, CHAIN, slow) as engine:
            store.deaf.add(engine._shell.worker)
            await asyncio.sleep(40)
            started = await engine.start(CHAIN, id="1", delay=1)
            await asyncio.sleep(60)
            assert (await store.describe("chain", "1")).owner is None
            store.deaf.clear()
            assert await started.result() == {"c": "c"}

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_run_under_its_name_that_it_does_not_hold_is_given_back(
    kind: type[VirtualStore],
) -> None:
    # scenarios 84, 96
    async def main() -> None:
        store = kind()
        async with engine_on(store, ONE, poll=1) as engine:
            started = await engine.start(ONE, id="1")
            (live,) = engine._shell.live.values()
            engine._shell.drop(live)
            await asyncio.sleep(10)
            assert live.key in engine._shell.live, "given back, then claimed like any other"
            await started.signal("approved", 1)
            assert await started.result() == {"ok": 1}

    run(main())


def test_a_run_that_the_store_gave_to_another_is_dropped() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, CHAIN, slow, poll=1) as engine:
            await engine.start(CHAIN, id="1")
            await asyncio.sleep(2)
            (live,) = engine._shell.live.values()
            store.hand_over(live.key, "somebody")
            await asyncio.sleep(5)
            assert live.dead
            assert engine._shell.live == {}
            await asyncio.sleep(100)
            assert made == ["a"]

    run(main())


def test_runs_on_their_way_into_memory_are_not_given_back() -> None:
    class SlowLoads(VirtualStore):
        async def load(self, key: bytes) -> Any:
            await asyncio.sleep(5)
            return await super().load(key)

    async def main() -> None:
        store = SlowLoads()
        async with engine_on(store, ONE, poll=0.5) as engine:
            delayed = [await engine.start(ONE, id=str(i), delay=1) for i in range(3)]
            await asyncio.sleep(30)
            for started in delayed:
                row = await store.describe("one", started.id)
                assert row.epoch == 1, "claimed once"

    run(main())


def test_the_clock_follows_the_stores() -> None:
    class Behind(VirtualClock):
        def __init__(self) -> None:
            super().__init__(-7_000_000, corrects=True)

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE, clock=Behind) as engine:
            assert store.now() - engine._clock.now() == 7_000_000
            await asyncio.sleep(3)
            assert store.now() == engine._clock.now()

    run(main())


def test_a_beat_that_fails_is_made_again() -> None:
    # scenario 99
    class Broken(VirtualStore):
        beats = 0

        async def beat(self, worker: str) -> Beat:
            self.beats += 1
            if self.beats <= 3:
                raise [StoreError("away"), KeyError("a bug"), StoreError("away")][self.beats - 1]
            return await super().beat(worker)

    async def main() -> None:
        store = Broken()
        async with engine_on(store, CHAIN, slow) as engine:
            assert await engine.run(CHAIN, id="1") == {"c": "c"}
        assert made == ["a", "b", "c"]
        assert store.beats > 10

    run(main())


def test_a_run_that_keeps_killing_its_workers_stalls_and_a_cancel_ends_it() -> None:
    # scenario 74; rule 9 of the stores
    from tests.virtual.engines import killed

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, CHAIN, slow) as engine:
            await engine.start(CHAIN, id="1")
        for _ in range(25):
            async with killed(store, CHAIN, slow):
                await asyncio.sleep(1)
        async with engine_on(store, CHAIN, slow) as engine:
            await asyncio.sleep(5)
            started = engine.get(CHAIN, "1")
            info = await started.describe()
            assert info.stalled is not None
            assert info.status == "running"
            made.clear()
            await started.cancel("it kills")
            await asyncio.sleep(5)
            assert await started.status() == "canceled"
            assert made == [], "mail is applied before anything is dispatched"

    run(main())
