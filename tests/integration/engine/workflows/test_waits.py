"""Workflows that wait: signals early, late and twice, long timers, parking and waking."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from perdure import (
    After,
    Channel,
    Context,
    On,
    RunFailed,
    Signal,
    TimedOut,
    step,
    workflow,
)
from perdure.engine.runs.live_run import LiveRun
from perdure.kernel.code.machine import CodeMachine
from perdure.model.errors import NoCases
from tests.virtual.engines import client_on, engine_on, killed, lasting_leases
from tests.virtual.loop import BEGIN, VirtualClock, run, settle
from tests.virtual.stores import LateStore, VirtualStore

DAY = 86_400
#: A clock that is looked at once a day only.
SLOW = partial(VirtualClock, longest_sleep=float(DAY))
approved = Signal("approved", int)
news = Channel("news", str)


@step
async def note(text: str) -> str:
    return text


@workflow(max_duration="30d")
async def approval(ctx: Context) -> list[Any]:
    before = await note("before")
    who = await ctx.wait(approved, timeout="72h")
    return [before, who, await note("after")]


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.rule("W-31", "W-32")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_waiting_workflow_costs_no_memory_and_goes_on_at_once_when_it_is_told(
    kind: type[VirtualStore],
) -> None:
    kinds = (LiveRun, CodeMachine)
    gc.collect()
    # What other tests of this process have let go of in odd ways is not this one's.
    others = {id(thing) for thing in gc.get_objects() if type(thing) in kinds}

    async def main() -> None:
        store = kind()
        async with engine_on(store, approval) as engine:
            started = await engine.start(approval, id="1")
            await asyncio.sleep(60)
            assert engine._shell.live == {}
            gc.collect()
            left = [thing for thing in gc.get_objects() if type(thing) in kinds]
            assert [thing for thing in left if id(thing) not in others] == []
            row = await store.describe("approval", "1")
            assert row.owner is None
            assert 0 <= row.ready_at - BEGIN - 72 * 3600 * 1_000_000 < 10_000
            before = now()
            await started.signal(approved, 7)
            assert await started.result() == ["before", 7, "after"]
            assert now() - before < 1

    run(main())


@pytest.mark.rule("W-30", "W-31", "W-48")
def test_a_wait_of_three_days_survives_a_killed_engine_and_times_out_on_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lasting_leases(monkeypatch)
    ends: list[float] = []

    @workflow(max_duration="30d")
    async def patient(ctx: Context) -> str:
        try:
            await ctx.wait(approved, timeout="72h")
        except TimedOut:
            ends.append(now())
            return f"{ctx.now():%d %H:%M}"
        return "told"

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, patient, clock=SLOW, poll="1h") as first:
            await first.start(patient, id="1")
            await asyncio.sleep(DAY)
        async with engine_on(store, patient, clock=SLOW, poll="1h") as engine:
            await asyncio.sleep(2 * DAY + 3600)
            assert await engine.get(patient, "1").result() == "18 08:00"
        assert ends == [3 * DAY]

    run(main())


@pytest.mark.rule("W-32")
def test_a_signal_sent_before_the_workflow_waits_is_not_lost() -> None:
    # scenario 47
    @step
    async def slow() -> None:
        await asyncio.sleep(10)

    @workflow(max_duration=None)
    async def late(ctx: Context) -> int:
        await slow()
        return await ctx.wait(approved)

    async def main() -> None:
        async with engine_on(VirtualStore(), late) as engine:
            started = await engine.start(late, id="1")
            await started.signal(approved, 3)
            assert await started.result() == 3
            again = await engine.start(late, id="2", delay="1h")
            await again.signal(approved, 4)
            assert await again.result() == 4

    run(main())


@pytest.mark.rule("W-31")
def test_a_signal_sent_twice_is_heard_once_and_a_message_each_time() -> None:
    @workflow(max_duration=None)
    async def hears(ctx: Context) -> list[Any]:
        first = await ctx.wait(approved)
        again = await ctx.wait(approved, timeout=1)
        return [first, again, await ctx.receive(news), await ctx.receive(news)]

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, hears) as engine:
            started = await engine.start(hears, id="1")
            await started.signal(approved, 1)
            await started.signal(approved, 2)
            await started.signal(news, "a")
            await started.signal(news, "b")
            assert await started.result() == [1, 1, "a", "b"]
            actions = await store.actions("hears", "1")
            assert actions.count("CreateTask wait:approved") == 1

    run(main())


@pytest.mark.rule("D-22", "W-33", "W-52")
def test_a_select_takes_what_is_there_in_case_order_then_what_comes_first() -> None:
    @workflow(max_duration=None)
    async def chooses(ctx: Context) -> list[Any]:
        await ctx.sleep(10)
        got: list[Any] = [await ctx.select(After(0, lambda: "time"), news, On(approved, str))]
        got.append(await ctx.select(After(0, lambda: "time"), news, On(approved, str)))
        got.append(await ctx.select(news, After("1h", lambda: "late")))
        got.append(await ctx.select(After(0, lambda: "due"), news))
        return got

    async def main() -> None:
        async with engine_on(VirtualStore(), chooses) as engine:
            started = await engine.start(chooses, id="1")
            await started.signal(approved, 5)
            await started.signal(news, "n")
            assert await started.result() == ["n", "5", "late", "due"]
            assert round(now()) == 3610

    run(main())


@pytest.mark.rule("W-33")
def test_a_select_without_cases_and_a_value_that_does_not_fit_say_so() -> None:
    called: list[Any] = []

    @workflow(max_duration=None)
    async def empty(ctx: Context) -> str:
        try:
            await ctx.select()
        except NoCases as error:
            return str(error)
        return ""

    @workflow(max_duration=None)
    async def misled(ctx: Context) -> None:
        await ctx.select(On(approved, called.append), After("1h"))

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, empty, misled) as engine:
            assert "at least one case" in await engine.run(empty, id="1")
            started = await engine.start(misled, id="1")
            await client_on(store).get("misled", "1").signal("approved", "text")
            with pytest.raises(RunFailed, match="signal approved"):
                await started.result()
            assert called == []

    run(main())


@pytest.mark.rule("W-30")
def test_sleeps_of_any_length_in_any_spelling() -> None:
    @workflow(max_duration=None)
    async def sleeps(ctx: Context) -> float:
        began = ctx.now()
        await ctx.sleep("1h")
        await ctx.sleep(timedelta(days=100))
        await asyncio.sleep(DAY)
        await ctx.sleep(ctx.now() + timedelta(minutes=1))
        await ctx.sleep(0)
        return (ctx.now() - began).total_seconds()

    async def main() -> None:
        async with engine_on(VirtualStore(), sleeps, clock=SLOW, poll="1d") as engine:
            started = await engine.start(sleeps, id="1")
            await asyncio.sleep(102 * DAY)
            # Parked, it is found by its due time: a poll late at most, each time.
            assert 0 <= await started.result() - (3600 + 101 * DAY + 60) < 3 * DAY

    with pytest.MonkeyPatch.context() as patch:
        lasting_leases(patch)
        run(main())


def test_a_signal_that_comes_while_the_run_is_parked_and_nobody_works_waits_for_an_engine() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with killed(store, approval) as first:
            await first.start(approval, id="1")
            await asyncio.sleep(60)
            assert first._shell.live == {}
        await client_on(store).get("approval", "1").signal("approved", 9)
        async with engine_on(store, approval) as engine:
            assert await engine.get(approval, "1").result() == ["before", 9, "after"]

    run(main())


def test_a_parked_workflow_with_a_deadline_ends_on_time() -> None:
    @workflow(max_duration="2d")
    async def forgotten(ctx: Context) -> None:
        await ctx.wait(approved)

    async def main() -> None:
        async with engine_on(VirtualStore(), forgotten, clock=SLOW, poll="1h") as engine:
            started = await engine.start(forgotten, id="1")
            await asyncio.sleep(2 * DAY - 1)
            with pytest.raises(TimedOut):
                await started.result()
            assert 0 <= now() - 2 * DAY <= 3600
            await settle()
            assert engine._shell.live == {}

    with pytest.MonkeyPatch.context() as patch:
        lasting_leases(patch)
        run(main())


@pytest.mark.rule("W-31")
def test_a_keyed_mailbox_is_one_of_its_own() -> None:
    @workflow(max_duration=None)
    async def asks(ctx: Context) -> dict[str, Any]:
        calls = ["a", "b"]
        got = await asyncio.gather(*(ctx.wait(approved[one]) for one in calls))
        return dict(zip(calls, got, strict=True))

    async def main() -> None:
        async with engine_on(VirtualStore(), asks) as engine:
            started = await engine.start(asks, id="1")
            await started.signal(approved["b"], 2)
            await started.signal(approved["a"], 1)
            assert await started.result() == {"a": 1, "b": 2}

    run(main())
