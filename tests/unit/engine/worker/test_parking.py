"""Runs that only wait leave memory, and nothing that comes meanwhile is lost."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from perdure import Retry, Saga, SagaContext
from perdure.engine.runs.live_run import LiveRun
from perdure.flow.step import step
from perdure.model.errors import StoreError
from perdure.stores.answers import Mail
from perdure.stores.rows import NEVER, Message, Park
from tests.virtual.engines import client_on, engine_on, graph, killed, node, task, wait, wait_for
from tests.virtual.loop import BEGIN, run, settle
from tests.virtual.stores import LateStore, VirtualStore

ONE = graph("one", [wait_for("ok", "approved")])


def now() -> float:
    return asyncio.get_running_loop().time()


@step
async def slow(seconds: float = 60) -> str:
    await asyncio.sleep(seconds)
    return "done"


class HoldingParks(VirtualStore):
    """Answers a park when told to; `before`: what happens just before it is carried out."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        self.early = False

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        self.asked.set()
        if self.early:
            answers = await super().park(worker, parks)
            await self.gate.wait()
            return answers
        await self.gate.wait()
        return await super().park(worker, parks)


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_run_that_only_waits_leaves_memory_after_a_while_and_nothing_of_it_stays(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with engine_on(store, ONE, park_after=5) as engine:
            started = await engine.start(ONE, id="1")
            await asyncio.sleep(4)
            assert len(engine._shell.live) == 1
            await asyncio.sleep(4)
            assert engine._shell.live == {}
            assert not any(engine._shell._named.values())
            row = await store.describe("one", "1")
            assert (row.owner, row.ready_at, row.status) == (None, NEVER, "running")
            gc.collect()
            there = [thing for thing in gc.get_objects() if type(thing) is LiveRun]
            assert [live for live in there if live._holder is engine._shell] == []
            loop: Any = asyncio.get_running_loop()
            assert len([timer for timer in loop._scheduled if not timer.cancelled()]) <= 4
            await started.signal("approved", 1)
            assert await started.result() == {"ok": 1}

    run(main())


def test_what_is_due_soon_or_under_way_keeps_a_run_in_memory() -> None:
    # scenario 55
    near = graph("near", [wait("rest", "15s")])
    busy = graph("busy", [node("f", "FORK"), task("slow"), wait_for("ok", "approved")],
                 ["f slow", "f ok"])  # fmt: skip

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, near, busy, slow) as engine:
            await engine.start(near, id="1")
            await engine.start(busy, id="1")
            await asyncio.sleep(14)
            names = {live.definition.name for live in engine._shell.live.values()}
            assert names == {"near", "busy"}, "one is due soon, of the other a step is under way"
            await asyncio.sleep(60)
            assert engine._shell.live == {}
            assert await engine.get(near, "1").status() == "completed"

    run(main())


def test_a_parked_run_is_due_when_the_first_of_its_times_comes() -> None:
    g = graph("g", [node("f", "FORK"), wait("a", "3h"), wait_for("b", "x", "1h"),
                    wait_for("c", "y")], ["f a", "f b", "f c"], max_duration="2h")  # fmt: skip

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(30)
            assert (await store.describe("g", "1")).ready_at == BEGIN + 3_600_000_000
            await asyncio.sleep(3700)
            assert "ResolveWait b" in await store.actions("g", "1")
            assert (await store.describe("g", "1")).ready_at == BEGIN + 7_200_000_000

    run(main())


@pytest.mark.parametrize("early", [False, True])
def test_a_message_that_comes_while_a_run_is_being_parked_is_not_lost(early: bool) -> None:
    """Posted before the store parks, or after it did and before it answered."""

    async def main() -> None:
        store = HoldingParks()
        store.early = early
        async with engine_on(store, ONE, park_after=1, poll="1h") as engine:
            started = await engine.start(ONE, id="1")
            await store.asked.wait()
            await started.signal("approved", 1)
            await settle()
            if not early:
                assert await started.status() == "running", "what comes waits for the answer"
            began = now()
            store.gate.set()
            assert await started.result() == {"ok": 1}
            assert now() - began < 0.1

    run(main())


def test_a_timer_that_fires_while_a_run_is_being_parked_is_not_lost() -> None:
    g = graph("g", [wait("rest", "30s")])

    async def main() -> None:
        store = HoldingParks()
        async with engine_on(store, g, park_after=5) as engine:
            started = await engine.start(g, id="1")
            await store.asked.wait()
            await asyncio.sleep(60)
            assert await started.status() == "running"
            store.gate.set()
            assert (await started.result())["rest"]

    run(main())


def test_an_odd_error_while_parking_leaves_no_run_between_two_states() -> None:
    class Odd(VirtualStore):
        tries = 0

        async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
            self.tries += 1
            if self.tries == 1:
                raise KeyError("a bug")
            return await super().park(worker, parks)

    async def main() -> None:
        store = Odd()
        async with engine_on(store, ONE, park_after=1, poll=1) as engine:
            started = await engine.start(ONE, id="1")
            await asyncio.sleep(60)
            assert store.tries > 1
            await started.signal("approved", 1)
            assert await started.result(timeout=5) == {"ok": 1}

    run(main())


@pytest.mark.parametrize("error", [StoreError("away"), KeyError("a bug")])
def test_mail_that_could_not_be_read_is_read_later(error: Exception) -> None:
    class Odd(VirtualStore):
        tries = 0

        async def mail(self, key: bytes, after: int) -> Sequence[Mail]:
            self.tries += 1
            if self.tries == 1:
                raise error
            return await super().mail(key, after)

        def subscribe(self, call: Any, posted: Any = None) -> Any:
            return super().subscribe(call)  # as if another process had posted

    async def main() -> None:
        store = Odd()
        async with engine_on(store, ONE, park_after=60, poll=1) as engine, client_on(store) as c:
            started = await engine.start(ONE, id="1")
            await asyncio.sleep(1)
            await c.get("one", "1").signal("approved", 1)
            assert await started.result(timeout=10) == {"ok": 1}
        assert store.tries > 1

    run(main())


@pytest.mark.parametrize("written", [False, True])
def test_a_park_whose_outcome_is_unknown_drops_the_run_and_the_beat_settles_it(
    written: bool,
) -> None:
    class Unsure(VirtualStore):
        tries = 0

        async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
            self.tries += 1
            if self.tries == 1:
                if written:
                    await super().park(worker, parks)
                raise StoreError("no answer came")
            return await super().park(worker, parks)

    async def main() -> None:
        store = Unsure()
        async with engine_on(store, ONE, park_after=5) as engine:
            started = await engine.start(ONE, id="1")
            await asyncio.sleep(40)
            row = await store.describe("one", "1")
            assert row.owner is None
            assert engine._shell.live == {}
            await started.signal("approved", 1)
            assert await started.result() == {"ok": 1}
            assert store.tries <= 2, "it is not repeated"

    run(main())


def test_a_run_that_another_worker_took_is_not_parked_but_dropped() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE, park_after=3, poll="1h") as engine:
            await engine.start(ONE, id="1")
            (key,) = engine._shell.live
            store.hand_over(key, "somebody")
            await asyncio.sleep(60)
            assert engine._shell.live == {}
            assert store._runs[key].owner == "somebody"

    run(main())


def test_an_engine_that_closes_leaves_what_rests_due_at_its_own_time() -> None:
    g = graph("g", [wait("rest", "1d")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, ONE) as engine:
            await engine.start(g, id="1")
            await engine.start(ONE, id="1")
        assert (await store.describe("g", "1")).ready_at == BEGIN + 86_400_000_000
        assert (await store.describe("one", "1")).ready_at == NEVER
        async with engine_on(store, g, ONE) as engine:
            assert await engine.resume() == 0

    run(main())


def test_a_pending_attempt_is_never_parked_when_the_engine_closes() -> None:
    g = graph("g", [task("slow")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, slow, grace=0) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(1)
        row = await store.describe("g", "1")
        assert row.owner is None
        assert row.ready_at <= store.now()

    run(main())


def test_ten_thousand_parked_runs_cost_an_idle_worker_nothing() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE) as engine:
            for number in range(10_000):
                await engine.start(ONE, id=str(number))
            await asyncio.sleep(60)
            assert engine._shell.live == {}
            asked = 0
            real = store.claim_runs

            async def counted(*args: Any) -> Any:
                nonlocal asked
                asked += 1
                claims = await real(*args)
                assert claims == []
                return claims

            store.claim_runs = counted  # type: ignore[method-assign]
            await asyncio.sleep(60)
            assert 0 < asked <= 90, "no more than the poll"
            store.claim_runs = real  # type: ignore[method-assign]
            await engine.get(ONE, "7").signal("approved", 7)
            assert await engine.get(ONE, "7").result() == {"ok": 7}
            assert engine._shell.live == {}

    run(main())


def test_a_crowded_engine_lets_go_of_what_rests_without_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("perdure.engine.worker.parking.CROWDED", 50)

    async def main() -> None:
        async with engine_on(VirtualStore(), ONE, park_after=5) as engine:
            for number in range(49):
                await engine.start(ONE, id=str(number))
            await asyncio.sleep(3)
            assert len(engine._shell.live) == 49
            await engine.start(ONE, id="one more")
            await asyncio.sleep(1)
            assert engine._shell.live == {}

    run(main())


def test_a_run_is_parked_by_one_worker_and_resumed_by_another() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE) as second:
            async with killed(store, ONE) as first:
                await first.start(ONE, id="1")
                await asyncio.sleep(60)
                assert first._shell.live == {}
            await store.post([Message("one", "1", "m", "signal", "approved", b"1")])
            assert await second.get(ONE, "1").result() == {"ok": 1}
        rows = (await store.load((await store.describe("one", "1")).key)).journal
        assert len(rows) == 2, "neither parking nor claiming writes a row"

    run(main())


def test_a_run_that_undoes_past_its_deadline_leaves_memory_between_two_tries() -> None:
    async def main() -> None:
        tries: list[float] = []

        async def first(ctx: SagaContext[int]) -> None: ...

        async def undo(ctx: SagaContext[int]) -> None:
            tries.append(now())
            raise ConnectionError("not now")

        async def late(ctx: SagaContext[int]) -> None:
            await asyncio.sleep(600)

        made = (
            Saga("late", int, max_duration="1m")
            .step("first", first, undo=undo, undo_retry=Retry(3, initial="1h", max_delay="1h"))
            .step("late", late, timeout="5m")
        )
        store = VirtualStore()
        async with engine_on(store, made, park_after=5) as engine:
            await engine.start(made, 1, id="1")
            await asyncio.sleep(1000)
            assert (len(tries), engine._shell.live) == (1, {})
            await asyncio.sleep(4000)
            assert len(tries) == 2

    run(main())
