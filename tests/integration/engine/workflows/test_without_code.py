"""Runs that end although their code cannot go on: by a cancel, or by their deadline."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from perdure import Canceled, Context, RunFailed, Signal, TimedOut, step, workflow
from perdure.client.run import Run
from perdure.conformance.rows import worker
from perdure.flow.workflow import Workflow
from perdure.model.errors import NonDeterminism
from perdure.stores.rows import NEVER
from tests.virtual.engines import client_on, engine_on, killed
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

go = Signal("go", int)
undone: list[int] = []


@step
async def charge(amount: int) -> int:
    return amount


@step
async def ship(amount: int) -> int:
    return amount


@step
async def refund(amount: int) -> int:
    undone.append(amount)
    return amount


@workflow(max_duration=None)
async def part(ctx: Context) -> int:
    return await ctx.wait(go)


def order(function: Any, limit: str | None = None) -> Workflow[Any, Any]:
    return workflow(max_duration=limit, name="order")(function)


async def charges(ctx: Context) -> str:
    try:
        await charge(1)
        waiting = asyncio.create_task(ctx.child(part, id="part"))
        await ctx.wait(go)
        await waiting
    finally:
        await refund(1)
    return "charged"


async def ships(ctx: Context) -> str:
    await ship(1)
    return "shipped"


async def why(started: Run[Any]) -> str:
    """Why the run stalled."""
    for _ in range(100):
        info = await started.describe()
        if info.stalled:
            return str(info.stalled)
        await asyncio.sleep(1)
    raise AssertionError("the run did not stall")


async def stalled(store: VirtualStore, limit: str | None = None) -> None:
    """A run of `charges` that waits, with a child, and that only `ships` is there for."""
    undone.clear()
    async with killed(store, order(charges, limit), part) as first:
        await first.start(order(charges, limit), id="1")
        await asyncio.sleep(30)
    await client_on(store).get("order", "1").signal("other", 7)


def test_a_run_whose_code_does_not_fit_any_more_can_be_cancelled_all_the_same() -> None:
    async def main() -> None:
        store = VirtualStore()
        await stalled(store)
        async with engine_on(store, order(ships), part) as second:
            started = second.get("order", "1")
            await why(started)
            await started.cancel("enough")
            with pytest.raises(Canceled, match="enough; ended without its code"):
                await started.result(timeout=60)
            end: Any = (await store.journal("order", "1"))[-1].actions[-1]
            assert "charge(1)" in end.failure.details["stalled"]
            assert undone == [], "its code has not run"
            with pytest.raises(Canceled, match="enough"):
                await second.get(part, "part").result(timeout=60)
        done = await store.actions("order", "1")
        at = done.index("RequestStop")
        assert done[at - 1] == "BufferSignal"
        assert sorted(done[at + 1 :]) == [
            "CancelChild part", "CancelTasks", "FinishRun", "ResolveWait wait:go",
        ]  # fmt: skip

    run(main())


def test_its_deadline_ends_it_and_it_was_asleep_until_then() -> None:
    async def main() -> None:
        store = VirtualStore()
        await stalled(store, "1h")
        async with engine_on(store, order(ships, "1h"), part) as second:
            started = second.get("order", "1")
            await why(started)
            await asyncio.sleep(3000)
            assert (await started.describe()).stalled
            with pytest.raises(TimedOut, match="max_duration; ended without its code"):
                await started.result(timeout=700)
            assert undone == []

    run(main())


def test_a_deadline_that_passed_while_nobody_was_there_ends_it_too() -> None:
    async def main() -> None:
        store = VirtualStore()
        await stalled(store, "1h")
        async with engine_on(store, order(ships, "1h"), part) as second:
            await why(second.get("order", "1"))
        await asyncio.sleep(7200)
        async with engine_on(store, order(ships, "1h"), part) as third:
            with pytest.raises(TimedOut):
                await third.get("order", "1").result(timeout=60)

    run(main())


def test_a_cancel_of_a_run_that_was_not_stalled_waits_for_code_that_can_clean_up() -> None:
    """It may have been read by a worker with other code while the one that fits is at work."""

    async def main() -> None:
        store = VirtualStore()
        undone.clear()
        async with killed(store, order(charges), part) as first:
            await first.start(order(charges), id="1")
            await asyncio.sleep(30)
        await client_on(store).get("order", "1").cancel("enough")
        async with engine_on(store, order(ships), part) as second:
            assert "charge(1)" in await why(second.get("order", "1"))
        async with engine_on(store, order(charges), part) as third:
            with pytest.raises(Canceled, match=r"^enough$"):
                await third.get("order", "1").result(timeout=60)
        assert undone == [1]

    run(main())


def test_with_code_that_fits_a_cancel_lets_it_clean_up() -> None:
    async def main() -> None:
        store = VirtualStore()
        await stalled(store)
        async with engine_on(store, order(ships), part) as second:
            await why(second.get("order", "1"))
        async with engine_on(store, order(charges), part) as third:
            await third.get("order", "1").cancel("enough")
            with pytest.raises(Canceled, match=r"^enough$"):
                await third.get("order", "1").result(timeout=60)
            assert undone == [1]

    run(main())


def test_what_ended_without_its_code_can_be_retried_with_code_that_fits() -> None:
    async def main() -> None:
        store = VirtualStore()
        await stalled(store)
        async with engine_on(store, order(ships), part) as second:
            started = second.get("order", "1")
            await why(started)
            await started.signal(go, 7)
            await started.cancel("enough")
            with pytest.raises(Canceled):
                await started.result(timeout=60)
        async with engine_on(store, order(charges), part) as third:
            again = third.get(order(charges), "1")
            await again.retry(failed=True)
            await asyncio.sleep(10)
            assert (await store.actions("order", "1")).count("CompleteTask charge") == 1
            await third.get(part, "part").retry(failed=True)
            await third.get(part, "part").signal(go, 1)
            # What was sent meanwhile is there: but the child that it joined was canceled before.
            with pytest.raises(Canceled):
                await again.result(timeout=60)
            assert undone == [1], "the code goes on"

    run(main())


@step
async def fails() -> None:
    raise ValueError("no")


def test_a_retry_leaves_nothing_of_its_code_behind() -> None:
    @workflow(max_duration=None)
    async def undoes(ctx: Context) -> None:
        try:
            await fails()
        finally:
            await refund(1)

    async def main() -> None:
        undone.clear()
        async with engine_on(VirtualStore(), undoes) as engine:
            started = await engine.start(undoes, id="1")
            with pytest.raises(RunFailed):
                await started.result()
            undone.clear()
            await client_on(engine._native.store).get(undoes, "1").retry(failed=True)
            gc.collect()
            with pytest.raises(RunFailed):
                await started.result()
            assert undone == [1]

    run(main())


def test_a_retry_with_code_that_does_not_fit_says_so_and_changes_nothing() -> None:
    async def main() -> None:
        store = VirtualStore()
        await stalled(store)
        async with engine_on(store, order(charges), part) as engine:
            started = engine.get("order", "1")
            await started.cancel("enough")
            with pytest.raises(Canceled):
                await started.result()
            before = await store.actions("order", "1")
            with pytest.raises(NonDeterminism, match=r"^nothing was retried: .*ship\(1\)"):
                await engine.get(order(ships), "1").retry(failed=True)
            assert await store.actions("order", "1") == before
            await engine.get(order(charges), "1").retry(failed=True)

    run(main())


def test_code_that_gets_stuck_as_it_cleans_up_ends_by_the_next_cancel_or_with_its_grace() -> None:
    async def cleans(ctx: Context) -> None:
        try:
            await ctx.wait(go)
        finally:
            await refund(1)
            await ctx.sleep(100)

    async def main(again: bool) -> None:
        store = VirtualStore()
        one = order(cleans)
        async with killed(store, one) as first:
            started = await first.start(one, id="1")
            await asyncio.sleep(1)
            await started.cancel("enough")
            await asyncio.sleep(1)
        began = asyncio.get_running_loop().time()
        async with engine_on(store, order(ships), part) as second:
            started = second.get("order", "1")
            await why(started)
            if again:
                await started.cancel("now")
            with pytest.raises(Canceled, match="enough; ended without its code"):
                await started.result()
        took = asyncio.get_running_loop().time() - began
        assert took < 10 if again else 20 < took < 60

    run(main(True))
    run(main(False))


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
@pytest.mark.parametrize("first", ["signal", "cancel", "clean"])
def test_a_hot_loop_keeps_no_run_from_its_end(kind: type[VirtualStore], first: str) -> None:
    """It loops as it takes the signal before the cancel, or as it cleans up."""

    async def spins(ctx: Context) -> None:
        try:
            await ctx.wait(go)
        finally:
            while True:  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def main() -> None:
        store = kind()
        async with engine_on(store, order(spins)) as engine:
            started = await engine.start(order(spins), id="1")
            await asyncio.sleep(1)
            if first == "signal":
                await started.signal(go, 1)
            elif first == "cancel":
                await started.cancel("enough")
            else:
                await asyncio.gather(started.signal(go, 1), started.cancel("enough"))
            await asyncio.sleep(5)
            await started.cancel("enough")
            with pytest.raises(Canceled, match="enough; ended without its code"):
                await started.result(timeout=60)
            assert not engine._shell.given_up

    run(main())


def test_a_hot_loop_at_its_deadline_ends_too() -> None:
    async def spins(ctx: Context) -> None:
        try:
            await ctx.wait(go)
        finally:
            while True:  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def main() -> None:
        async with engine_on(VirtualStore(), order(spins, "1m")) as engine:
            started = await engine.start(order(spins, "1m"), id="1")
            with pytest.raises(TimedOut, match="ended without its code"):
                await started.result(timeout=120)

    run(main())


def test_a_run_that_kills_its_workers_ends_without_its_code_once_it_is_cancelled() -> None:
    async def main() -> None:
        store = VirtualStore()
        undone.clear()
        async with killed(store, order(charges), part) as first:
            await first.start(order(charges), id="1")
            await asyncio.sleep(5)
        live = store._runs[(await store.describe("order", "1")).key]
        live.let_go(NEVER, "its workers die")
        await client_on(store).get("order", "1").cancel("enough")
        for n in range(3):  # each dies as it brings the code back
            await store.register(worker(f"w{n}"))
            assert await store.claim_runs(f"w{n}", ["order"], 1)
            store.crash(f"w{n}")
        async with engine_on(store, order(charges), part) as second:
            with pytest.raises(Canceled, match="ended without its code"):
                await second.get("order", "1").result(timeout=100)
        assert undone == []
        assert live.status == "canceled"

    run(main())


def test_one_that_cannot_end_so_either_stalls_and_is_not_loaded_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[str] = []

    def broken(_machine: Any, _kind: str, _reason: str) -> None:
        tried.append("end")
        if len(tried) > 20:
            raise KeyboardInterrupt("it is tried without an end")
        raise AssertionError("no such move")

    monkeypatch.setattr("perdure.kernel.code.codeless._end", broken)

    async def main() -> None:
        store = VirtualStore()
        await stalled(store)
        async with engine_on(store, order(ships), part) as second:
            started = second.get("order", "1")
            await why(started)
            await started.cancel("enough")
            await asyncio.sleep(60)
            assert "no such move" in await why(started)
            assert tried == ["end"]

    run(main())
