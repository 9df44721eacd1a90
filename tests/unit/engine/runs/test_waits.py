"""Waits pass at their time, however long, whoever holds the run then, and whatever its clock."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from perdure.flow.step import step
from perdure.model.errors import Failure, RunFailed, TimedOut
from perdure.model.policy import Retry
from tests.virtual.engines import (
    engine_on,
    graph,
    killed,
    lasting_leases,
    node,
    task,
    wait,
    wait_for,
)
from tests.virtual.loop import BEGIN, VirtualClock, run, settle
from tests.virtual.stores import LateStore, VirtualStore

DAY = 86_400.0


def now() -> float:
    return asyncio.get_running_loop().time()


@step
async def work() -> str:
    return "done"


LONG = graph("long", [wait("rest", "90d"), task("work")])
SHORT = graph("short", [wait("rest", "5s"), task("work")])


@pytest.mark.rule("G-77", "G-87")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_wait_ends_at_its_time_and_says_when(kind: type[VirtualStore]) -> None:
    output = {"at": "{{tasks.rest.output.woke_at}}"}
    g = graph("g", [wait("rest", "5s"), task("work")], output=output)

    async def main() -> None:
        async with engine_on(kind(), g, work) as engine:
            output = await engine.run(g, id="1")
            woke = datetime.fromisoformat(output["at"])
            due = datetime.fromtimestamp(BEGIN / 1_000_000, UTC) + timedelta(seconds=5)
            assert abs(woke - due) < timedelta(seconds=0.01)

    run(main())


def test_a_wait_of_months_passes_with_the_engine_open(monkeypatch: pytest.MonkeyPatch) -> None:
    # scenarios 71, 261
    lasting_leases(monkeypatch)

    async def main() -> None:
        async with engine_on(VirtualStore(), LONG, work, poll="1h") as engine:
            started = await engine.start(LONG, id="1")
            await asyncio.sleep(89.9 * DAY)
            assert await started.status() == "running"
            assert engine._shell.live == {}, "it waits outside of memory"
            assert await started.result() == {"work": "done"}
            assert 0 <= now() - 90 * DAY <= 3600

    run(main())


def test_a_wait_of_months_passes_while_nobody_works() -> None:
    # scenario 60: due times are rows, whoever looks finds them
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, LONG, work) as engine:
            await engine.start(LONG, id="1")
        for _ in range(3):
            await asyncio.sleep(20 * DAY)
            async with engine_on(store, LONG, work) as engine:
                assert await engine.resume() == 0, "nothing is due"
        await asyncio.sleep(60 * DAY)
        async with engine_on(store, LONG, work) as engine:
            assert await engine.get(LONG, "1").result() == {"work": "done"}

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_wait_goes_on_where_it_was_after_a_crash(kind: type[VirtualStore]) -> None:
    async def main() -> None:
        store = kind()
        async with killed(store, SHORT, work) as engine:
            await engine.start(SHORT, id="1")
            await asyncio.sleep(2)
        async with engine_on(store, SHORT, work) as engine:
            assert await engine.get(SHORT, "1").result() == {"work": "done"}
            assert now() == pytest.approx(5, abs=0.1)

    run(main())


@pytest.mark.rule("D-13")
def test_a_wait_is_not_cut_short_by_a_clock_that_runs_ahead_or_is_set() -> None:
    # scenario 68: the store's clock decides; a worker whose own is off is corrected by its beats
    class Ahead(VirtualClock):
        def __init__(self) -> None:
            super().__init__(3_600_000_000, corrects=True)

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, SHORT, work, clock=Ahead) as engine:
            assert engine._clock.now() == store.now() + 3_600_000_000
            await asyncio.sleep(3)
            assert engine._clock.now() == store.now()
            assert await engine.run(SHORT, id="1") == {"work": "done"}
            assert now() == pytest.approx(8, abs=0.1)

    run(main())


@pytest.mark.rule("G-82", "G-87")
def test_a_wait_for_a_signal_times_out_as_a_failure_of_its_node() -> None:
    # scenarios 44, 56: a timeout is a recorded outcome
    g = graph("g", [wait_for("ok", "approved", "1h"), task("work")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, work) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(TimedOut, match="approved"):
                await started.result()
            assert now() == pytest.approx(3600, abs=1.0)
        assert (await store.actions("g", "1"))[-2:] == ["ResolveWait ok", "FinishRun"]

    run(main())


def test_a_wait_that_ended_by_its_signal_leaves_no_timer() -> None:
    # scenarios 27, 40, 48
    g = graph("g", [wait_for("ok", "approved", "1h"), wait_for("next", "approved")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, park_after="1d") as engine:
            started = await engine.start(g, id="1")
            (live,) = engine._shell.live.values()
            assert live.timers.due("ok") == BEGIN + 3_600_000_000
            await started.signal("approved", 1)
            assert live.timers.due("ok") is None
            await asyncio.sleep(7200)
            assert await started.status() == "running"
            await started.signal("approved", 2)
            assert await started.result() == {"next": 2}

    run(main())


def test_timers_of_one_moment_fire_in_the_order_of_their_arming() -> None:
    # scenario 65
    done: list[str] = []

    @step
    async def note(name: str) -> None:
        done.append(name)

    names = [f"n{i}" for i in range(8)]
    g = graph(
        "g",
        [node("f", "FORK"), *(wait(f"w{n}", "10s") for n in names),
         *(task(n, "note", {"name": n}) for n in names)],
        [*(f"f w{n}" for n in names), *(f"w{n} {n}" for n in names)],
    )  # fmt: skip

    async def main() -> None:
        async with engine_on(VirtualStore(), g, note) as engine:
            await engine.run(g, id="1")

    run(main())
    assert done == names


def test_the_deadline_ends_a_run_that_waits() -> None:
    g = graph("g", [wait_for("ok", "approved")], max_duration="2h")

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(TimedOut, match="max_duration"):
                await started.result()
            assert now() == pytest.approx(7200, abs=1.0)

    run(main())


def test_a_delayed_start_keeps_its_time_though_a_signal_came_before() -> None:
    g = graph("g", [task("work"), wait_for("ok", "approved")])
    at: list[float] = []

    @step(name="work")
    async def note() -> None:
        at.append(now())

    async def main() -> None:
        async with engine_on(VirtualStore(), g, note) as engine:
            started = await engine.start(g, id="1", delay="1h")
            await asyncio.sleep(60)
            await started.signal("approved", "early")
            assert await started.result() == {"ok": "early"}
        assert at == [pytest.approx(3600, abs=1.0)]

    run(main())


def test_a_retry_in_an_hour_waits_outside_of_memory() -> None:
    # scenarios 58, 60
    times = 0

    @step(retry=Retry(2, initial="1h", max_delay="1h"))
    async def flaky() -> str:
        nonlocal times
        times += 1
        if times == 1:
            raise Failure("not yet")
        return "done"

    g = graph("g", [task("flaky")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, flaky) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(60)
            assert engine._shell.live == {}
            assert await started.result() == {"flaky": "done"}
            assert now() == pytest.approx(3600, abs=1.0)
            await settle()

    run(main())


def test_a_run_that_failed_while_waiting_elsewhere_says_so() -> None:
    g = graph("g", [node("f", "FORK"), wait("rest", "1h"), task("bad")], ["f rest", "f bad"])

    @step
    async def bad() -> None:
        raise ValueError("no")

    async def main() -> None:
        async with engine_on(VirtualStore(), g, bad) as engine:
            with pytest.raises(RunFailed, match=r"node .* failed"):
                await engine.run(g, id="1")
            assert now() == pytest.approx(3600, abs=1.0), "the other branch ends first"

    run(main())
