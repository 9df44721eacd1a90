"""Runs that start, join and wait for other runs, on one engine and on several."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Canceled, Context, Failure, RunFailed, Signal, TimedOut, step, workflow
from tests.virtual.engines import client_on, engine_on, graph, killed, task
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore

go = Signal("go", int)
done: list[Any] = []

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


class Declined(Failure, kind="declined-by-the-bank", permanent=True):
    pass


@step
async def charge(amount: int, seconds: float = 0.0) -> int:
    await asyncio.sleep(seconds)
    done.append(amount)
    return amount


@step
async def decline() -> None:
    raise Declined("no money")


@workflow(max_duration="30d")
async def pay(ctx: Context, amount: int) -> tuple[int, str]:
    if amount == 0:
        await decline()
    if amount == 1:
        raise ValueError("one is too little")
    return await charge(amount, 5.0), "paid"


@workflow(max_duration="30d", name="patient")
async def patient(ctx: Context) -> int:
    return await ctx.wait(go)


@workflow(max_duration="1h")
async def order(ctx: Context, amount: int) -> Any:
    paid = await ctx.child(pay, amount)
    return [type(paid).__name__, *paid]


@workflow(max_duration=None)
async def waits(ctx: Context) -> int:
    return await ctx.child(patient, id="p")


@STORES
def test_a_child_runs_as_a_run_of_its_own_and_its_output_is_of_its_type(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with engine_on(store, order, pay, charge) as engine:
            assert await engine.run(order, 7, id="1") == ["tuple", 7, "paid"]
            child = engine.get(pay, "order/1/pay")
            assert await child.result() == (7, "paid")
        assert done == [7]
        kept = [a for a in await store.actions("order", "1") if a.endswith(" pay")]
        assert kept == ["CreateTask pay", "StartChild pay", "ChildFound pay", "CompleteTask pay"]

    run(main())


@STORES
def test_a_childs_failures_are_its_parents(kind: type[VirtualStore]) -> None:
    @workflow(max_duration="1h")
    async def tries(ctx: Context) -> list[str]:
        seen = []
        for amount in (0, 1):
            try:
                await ctx.child(pay, amount)
            except Failure as error:
                seen.append(f"{type(error).__name__} {error.kind} {error}")
        return seen

    async def main() -> None:
        async with engine_on(kind(), tries, pay, decline) as engine:
            assert await engine.run(tries, id="1") == [
                "Declined declined-by-the-bank no money", "RunFailed ValueError one is too little",
            ]  # fmt: skip

    run(main())


@STORES
def test_a_graph_can_be_a_child_and_one_that_refuses_its_input_fails_the_call(
    kind: type[VirtualStore],
) -> None:
    shipping = graph(
        "shipping",
        [task("charge", "charge", {"amount": "{{input.cents}}"})],
        output="{{tasks.charge.output}}",
        input={"type": "object", "required": ["cents"]},
    )

    @workflow(max_duration="1h")
    async def ships(ctx: Context) -> Any:
        try:
            await ctx.child(shipping, {"euros": 1})
        except RunFailed as error:
            done.append(error.kind)
        return await ctx.child(shipping, {"cents": 3})

    async def main() -> None:
        async with engine_on(kind(), ships, shipping, charge) as engine:
            assert await engine.run(ships, id="1") == 3
            assert done == ["InvalidRequest", 3]

    run(main())


@pytest.mark.rule("W-34")
@STORES
def test_a_run_that_is_there_is_joined_with_its_own_input_and_may_have_ended(
    kind: type[VirtualStore],
) -> None:
    @workflow(max_duration="1h")
    async def joins(ctx: Context) -> Any:
        return await asyncio.gather(ctx.child(pay, 9, id="x"), ctx.child(pay, 1, id="y"))

    async def main() -> None:
        async with engine_on(kind(), joins, pay, charge) as engine:
            await engine.start(pay, 5, id="x")
            await engine.run(pay, 6, id="y")
            assert await engine.run(joins, id="1") == [[5, "paid"], [6, "paid"]]
            assert done == [6, 5] or done == [5, 6]

    run(main())


@pytest.mark.rule("W-34")
@pytest.mark.parametrize("ends", ["cancel", "deadline", "gives up"])
@pytest.mark.parametrize("joined", [False, True])
@STORES
def test_only_a_child_that_was_made_for_the_call_ends_with_it(
    kind: type[VirtualStore], joined: bool, ends: str
) -> None:
    limit = "1h" if ends == "deadline" else None

    @workflow(max_duration=limit)
    async def parent(ctx: Context) -> str:
        try:
            async with asyncio.timeout(60 if ends == "gives up" else None):
                await ctx.child(patient, id="p")
        except TimeoutError:
            return "gave up"
        return "got it"

    async def main() -> None:
        store = kind()
        async with engine_on(store, parent, patient) as engine:
            if joined:
                await engine.start(patient, id="p")
            started = await engine.start(parent, id="1")
            await asyncio.sleep(20)
            if ends == "cancel":
                await started.cancel("no more")
                with pytest.raises(Canceled):
                    await started.result()
            elif ends == "deadline":
                with pytest.raises(TimedOut):
                    await started.result()
            else:
                assert await started.result() == "gave up"
            child = engine.get(patient, "p")
            if not joined:
                with pytest.raises(Canceled, match="does not wait for it any more"):
                    await child.result()
            else:
                await child.signal(go, 3)
                assert await child.result() == 3

    run(main())


def test_a_cancelled_parent_cleans_up_without_waiting_for_its_child() -> None:
    @workflow(max_duration=None)
    async def slow_to_go(ctx: Context) -> None:
        try:
            await ctx.wait(go)
        finally:
            await charge(1, 20.0)

    @workflow(max_duration=None)
    async def parent(ctx: Context) -> None:
        try:
            await ctx.child(slow_to_go)
        finally:
            await charge(2)

    async def main() -> None:
        async with engine_on(VirtualStore(), parent, slow_to_go, charge) as engine:
            started = await engine.start(parent, id="1")
            await asyncio.sleep(1)
            await started.cancel()
            with pytest.raises(Canceled):
                await started.result()
            assert done == [2]
            with pytest.raises(Canceled):
                await engine.get(slow_to_go, "parent/1/slow-to-go").result()
            assert done == [2, 1]

    run(main())


@pytest.mark.rule("W-35")
@STORES
def test_a_spawned_run_outlives_the_one_that_spawned_it(kind: type[VirtualStore]) -> None:
    @workflow(max_duration="1h")
    async def spawns(ctx: Context) -> list[str]:
        return [await ctx.spawn(pay, 3), await ctx.spawn(pay, 3, id="there")]

    async def main() -> None:
        async with engine_on(kind(), spawns, pay, charge) as engine:
            await engine.start(pay, 4, id="there")
            assert await engine.run(spawns, id="1") == ["spawns/1/pay", "there"]
            assert done == []
            assert await engine.get(pay, "spawns/1/pay").result() == (3, "paid")
            assert await engine.get(pay, "there").result() == (4, "paid")

    run(main())


@STORES
def test_a_run_that_waits_for_a_child_leaves_memory_and_comes_back_with_its_end(
    kind: type[VirtualStore],
) -> None:
    # scenario 208
    async def main() -> None:
        async with engine_on(kind(), waits, patient) as engine:
            started = await engine.start(waits, id="1")
            await asyncio.sleep(3600)
            assert engine._shell.live == {}
            await engine.get(patient, "p").signal(go, 4)
            assert await started.result() == 4

    run(main())


def test_a_child_that_no_worker_serves_waits_for_one_that_does() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, order) as first:
            started = await first.start(order, 7, id="1")
            await asyncio.sleep(60)
            child = await first.get(pay, "order/1/pay").describe()
            assert (child.status, child.stalled) == ("running", None)
            async with engine_on(store, pay, charge):
                assert await started.result() == ["tuple", 7, "paid"]

    run(main())


@pytest.mark.rule("W-34")
@pytest.mark.parametrize("seconds", [0.0, 0.0005, 0.0015, 0.0025, 1.0, 30.0])
def test_a_crash_of_the_parents_worker_starts_no_second_child(seconds: float) -> None:
    async def main() -> None:
        store = LateStore()
        async with killed(store, waits, patient) as first:
            await first.start(waits, id="1")
            await asyncio.sleep(seconds)
        async with engine_on(store, waits, patient) as engine:
            await asyncio.sleep(60)
            await engine.get(patient, "p").signal(go, 4)
            assert await engine.get(waits, "1").result() == 4
            actions = await store.actions("waits", "1")
            assert [actions.count(f"{a} patient") for a in ("StartChild", "ChildFound")] == [1, 1]

    run(main())


@STORES
def test_a_paused_run_starts_no_child_until_it_is_unpaused(kind: type[VirtualStore]) -> None:
    large = "x" * 5000

    @workflow(max_duration=None)
    async def echo(ctx: Context, text: str) -> int:
        return len(text)

    @workflow(max_duration=None)
    async def parent(ctx: Context) -> int:
        await ctx.wait(go)
        return await ctx.child(echo, large)

    async def main() -> None:
        store = kind()
        async with killed(store, parent, echo) as first:
            started = await first.start(parent, id="1")
            await started.pause()
            await started.signal(go, 1)
            await asyncio.sleep(5)
            assert "StartChild echo" in await store.actions("parent", "1")
            assert [info.workflow async for info in first.runs()] == ["parent"]
        async with engine_on(store, parent, echo) as engine:
            await asyncio.sleep(60)
            assert [info.workflow async for info in engine.runs()] == ["parent"]
            again = engine.get(parent, "1")
            await again.unpause()
            assert await again.result() == 5000

    run(main())


def test_a_retried_run_asks_for_its_child_again_which_may_have_been_retried_too() -> None:
    broken = [True]

    @step
    async def mended() -> int:
        if broken[0]:
            raise Failure("not yet", kind="broken")
        return 5

    @workflow(max_duration=None)
    async def child(ctx: Context) -> int:
        return await mended()

    @workflow(max_duration=None)
    async def parent(ctx: Context) -> int:
        return await ctx.child(child)

    async def main() -> None:
        async with engine_on(VirtualStore(), parent, child) as engine:
            started = await engine.start(parent, id="1")
            with pytest.raises(RunFailed):
                await started.result()
            await started.retry(failed=True)
            with pytest.raises(RunFailed):  # its child is as it was
                await started.result()
            broken[0] = False
            await engine.get(child, "parent/1/child").retry(failed=True)
            await started.retry(failed=True)
            assert await started.result() == 5

    run(main())


@STORES
def test_many_children_at_once(kind: type[VirtualStore]) -> None:
    @workflow(max_duration=None)
    async def square(ctx: Context, n: int) -> int:
        return n * n

    @workflow(max_duration=None)
    async def sums(ctx: Context) -> int:
        squares = await ctx.map(lambda n: ctx.child(square, n), range(200), concurrency=50)
        return sum(squares)

    async def main() -> None:
        async with engine_on(kind(), sums, square) as engine:
            assert await engine.run(sums, id="1") == sum(n * n for n in range(200))
            await settle()
            assert engine._shell.live == {}

    run(main())


def test_a_parent_in_a_client_without_workers_waits_in_the_store() -> None:
    async def main() -> None:
        store = VirtualStore()
        await client_on(store).start(order, 7, id="1")
        async with engine_on(store, order, pay, charge) as engine:
            assert await engine.get(order, "1").result() == ["tuple", 7, "paid"]

    run(main())
