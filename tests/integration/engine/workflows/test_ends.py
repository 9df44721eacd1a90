"""How runs of workflows end: cancelled, out of time, cleaned up, paused meanwhile, retried."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure import (
    Canceled,
    Context,
    RunFailed,
    Signal,
    StepFailed,
    TimedOut,
    current_step,
    step,
    workflow,
)
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import BEGIN, run, settle
from tests.virtual.stores import LateStore, VirtualStore

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
approved = Signal("approved", int)
done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@step
async def work(name: str, seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    done.append(name)
    return name


def now() -> float:
    return asyncio.get_running_loop().time()


@workflow(max_duration="1h")
async def tidy(ctx: Context) -> str:
    try:
        await work("long", 86_400.0)
    except asyncio.CancelledError:
        await work("told", 2)
        assert ctx.canceled
    finally:
        await work("cleaned")
    return "as if nothing had been"


@pytest.mark.rule("D-31", "W-36", "W-38")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_cancelled_run_cleans_up_and_ends_canceled_whatever_it_returns(
    kind: type[VirtualStore],
) -> None:
    # scenarios 23, 25, 29
    async def main() -> None:
        store = kind()
        async with engine_on(store, tidy) as engine:
            started = await engine.start(tidy, id="1")
            await asyncio.sleep(5)
            await started.cancel("enough")
            await started.cancel("again")
            with pytest.raises(Canceled, match="enough"):
                await started.result()
            assert done == ["told", "cleaned"]
            assert await started.status() == "canceled"
            actions = await store.actions("tidy", "1")
            assert actions.count("RequestStop") == 1
            assert now() < 8

    run(main())


@pytest.mark.rule("W-48", "W-54", "D-31")
def test_a_run_past_its_deadline_cleans_up_and_fails_as_timed_out() -> None:
    @workflow(max_duration="10s")
    async def late(ctx: Context) -> str:
        try:
            await ctx.sleep("1h")
        except TimedOut:
            return "an except for a wait does not swallow the deadline"
        finally:
            await work("cleaned")
        return "slept"

    async def main() -> None:
        async with engine_on(VirtualStore(), late) as engine:
            started = await engine.start(late, id="1")
            with pytest.raises(TimedOut):
                await started.result()
            assert done == ["cleaned"]
            assert await started.status() == "failed"
            assert round(now()) == 10

    run(main())


def test_cleaning_up_is_bounded_by_the_grace_also_after_a_crash() -> None:
    @workflow(max_duration=None)
    async def slow_to_go(ctx: Context) -> None:
        try:
            await ctx.wait(approved)
        finally:
            await work("never", 86_400.0)

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, slow_to_go) as first:
            started = await first.start(slow_to_go, id="1")
            await asyncio.sleep(1)
            await started.cancel()
            await asyncio.sleep(10)
        async with engine_on(store, slow_to_go) as engine:
            with pytest.raises(Canceled):
                await engine.get(slow_to_go, "1").result()
            assert 30 < now() < 33
            await settle()
            assert engine._shell.live == {}

    run(main())


@pytest.mark.rule("D-31")
def test_code_that_swallows_every_cancel_ends_canceled_all_the_same() -> None:
    @workflow(max_duration=None)
    async def deaf(ctx: Context) -> str:
        while True:
            try:
                await ctx.sleep("1h")
            except BaseException:
                done.append("swallowed")

    async def main() -> None:
        async with engine_on(VirtualStore(), deaf) as engine:
            started = await engine.start(deaf, id="1")
            await started.cancel()
            with pytest.raises(Canceled):
                await started.result()
            assert round(now()) == 30

    run(main())


def test_a_paused_workflow_starts_no_step_and_hears_what_it_is_told() -> None:
    @workflow(max_duration=None)
    async def steps(ctx: Context) -> int:
        await work("a", 5)
        await work("b")
        return await ctx.wait(approved)

    async def main() -> None:
        async with engine_on(VirtualStore(), steps) as engine:
            started = await engine.start(steps, id="1")
            await asyncio.sleep(1)
            await started.pause()
            await asyncio.sleep(20)
            await started.signal(approved, 4)
            await asyncio.sleep(20)
            assert done == ["a"], "what was under way ends"
            await started.unpause()
            assert await started.result() == 4
            assert done == ["a", "b"]

    run(main())


@pytest.mark.rule("W-23")
def test_code_of_a_delayed_run_does_not_begin_before_its_time() -> None:
    begun: list[float] = []

    @workflow(max_duration="1m")
    async def later(ctx: Context) -> str:
        begun.append((ctx.now() - EPOCH).total_seconds() - BEGIN / 1e6)
        await ctx.sleep(50)
        return "done"

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, later) as first:
            started = await first.start(later, id="1", delay="1h")
            await asyncio.sleep(3000)
            await started.signal(approved, 1)
            await asyncio.sleep(30)
            assert begun == []
        async with engine_on(store, later) as engine:
            assert await engine.get(later, "1").result() == "done"
            assert 3600 <= begun[0] < 3601, "its deadline counts from then"

    run(main())


@pytest.mark.rule("W-23")
def test_a_delayed_run_can_be_cancelled_before_it_begins() -> None:
    @workflow(max_duration="1m")
    async def later(ctx: Context) -> None:
        done.append("began")

    async def main() -> None:
        async with engine_on(VirtualStore(), later) as engine:
            started = await engine.start(later, id="1", delay="1h")
            await started.cancel()
            with pytest.raises(Canceled):
                await started.result()
            assert done == []
            assert now() < 3

    run(main())


fails: list[str] = []


@step
async def brittle(name: str) -> str:
    done.append(name)
    if name in fails:
        raise ValueError(name)
    return name


@workflow(max_duration="1h")
async def chain(ctx: Context) -> list[str]:
    first = await brittle("a")
    rest = await asyncio.gather(brittle("b"), brittle("c"))
    return [first, *rest, await brittle("d")]


@pytest.mark.parametrize("failing", ["a", "b", "c", "d"])
def test_a_failed_run_retried_repeats_what_failed_and_what_came_after(failing: str) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), chain) as engine:
            fails[:] = [failing]
            started = await engine.start(chain, id="1")
            with pytest.raises(RunFailed, match=failing):
                await started.result()
            fails.clear()
            before = len(done)
            await started.retry(failed=True)
            assert await started.result() == ["a", "b", "c", "d"]
            again = done[before:]
            assert again[0] == failing or failing in ("b", "c")
            assert failing in again
            assert "a" not in again or failing == "a"

    run(main())


def test_a_completed_run_is_retried_from_a_call() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), chain) as engine:
            fails.clear()
            assert await engine.run(chain, id="1") == ["a", "b", "c", "d"]
            started = engine.get(chain, "1")
            await started.retry(from_node="brittle#4")
            assert await started.result() == ["a", "b", "c", "d"]
            assert done == ["a", "b", "c", "d", "d"]

    run(main())


@pytest.mark.rule("D-21")
def test_a_saga_of_steps_side_by_side_starts_each_as_soon_as_its_own_inputs_are_there() -> None:
    begun: dict[str, float] = {}

    @step
    async def timed(name: str, seconds: float) -> str:
        begun[name] = now()
        await asyncio.sleep(seconds)
        return name

    @workflow(max_duration=None)
    async def order(ctx: Context) -> None:
        async def reserve_and_pack() -> None:
            await timed("reserve", 1)
            await timed("pack", 1)

        async def charge_and_bill() -> None:
            await timed("charge", 5)
            await timed("bill", 1)

        async with ctx.saga():
            await asyncio.gather(reserve_and_pack(), charge_and_bill())

    async def main() -> None:
        async with engine_on(VirtualStore(), order) as engine:
            await engine.run(order, id="1")
            rounded = {name: round(at) for name, at in begun.items()}
            assert rounded == {"reserve": 0, "charge": 0, "pack": 1, "bill": 5}

    run(main())


def test_a_saga_undoes_what_was_done_when_the_run_is_cancelled() -> None:
    @step
    async def charge(amount: int) -> str:
        await asyncio.sleep(5)
        done.append(f"charged {amount}")
        return f"c-{amount}"

    @step(retry=3)
    async def refund(charge: str) -> None:
        if current_step().attempt < 3:
            raise ValueError("not yet")
        done.append(f"refunded {charge}")

    @workflow(max_duration=None)
    async def order(ctx: Context) -> None:
        async with ctx.saga() as saga:
            await saga.run(charge, 1, undo=refund)
            await saga.run(charge, 2, undo=refund)

    async def main() -> None:
        async with engine_on(VirtualStore(), order) as engine:
            started = await engine.start(order, id="1")
            await asyncio.sleep(7)
            await started.cancel()
            with pytest.raises(Canceled):
                await started.result()
            assert done == ["charged 1", "charged 2", "refunded c-2", "refunded c-1"]

    run(main())


def test_waiting_for_a_result_never_owns_the_run() -> None:
    # scenario 30
    async def main() -> None:
        @workflow(max_duration=None)
        async def slow(ctx: Context) -> str:
            return await work("slow", 10)

        async with engine_on(VirtualStore(), slow) as engine:
            started = await engine.start(slow, id="1")
            with pytest.raises(TimedOut):
                await started.result(timeout=1)
            waiting = asyncio.ensure_future(started.result())
            await asyncio.sleep(1)
            waiting.cancel()
            await settle()
            assert await started.result() == "slow"

    run(main())


def test_a_failure_says_which_step_failed() -> None:
    @workflow(max_duration=None)
    async def asks(ctx: Context) -> list[Any]:
        try:
            await brittle("x")
        except StepFailed as failed:
            return [failed.step, failed.kind, failed.message, failed.attempt]
        return []

    async def main() -> None:
        fails[:] = ["x"]
        async with engine_on(VirtualStore(), asks) as engine:
            assert await engine.run(asks, id="1") == ["brittle", "ValueError", "x", 1]

    run(main())
