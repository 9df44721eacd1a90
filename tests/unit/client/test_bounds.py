"""How long a caller waits for a store that is away, and what is left behind where it gave up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Context, Saga, SagaContext, StoreError, step, workflow
from perdure.client.engine import Engine
from perdure.errors import InvalidOptions, TimedOut
from perdure.model.errors import InvalidId
from tests.virtual.engines import client_on, engine_on
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore, down

done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@step
async def pay(who: str) -> None:
    done.append(who)


@workflow(max_duration="1h")
async def order(ctx: Context, who: str) -> str:
    await pay(who)
    await ctx.sleep(10)
    return who


async def note(ctx: SagaContext[dict[str, Any]]) -> None:
    done.append(ctx.run_id)


class Ordered(dict[str, Any]):
    """An event."""


noted = Saga("noted", dict[str, Any]).step("note", note).started_by(Ordered)


def seconds() -> float:
    return asyncio.get_running_loop().time()


def test_a_run_says_by_the_time_given_that_nobody_knows_of_its_start_and_is_one_run() -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, order) as engine:
            store.holding = True
            began = seconds()
            with pytest.raises(StoreError, match=r"order/a .*not known.*if_exists='join'"):
                await engine.run(order, "ann", id="a", timeout=5)
            assert seconds() - began == pytest.approx(5)
            assert done == []
            store.holding = False
            store.let_go()
            assert await engine.run(order, "ann", id="a", timeout="1m") == "ann"
            assert done == ["ann"]

    run(main())


def test_what_the_start_took_is_not_waited_for_once_more() -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, order) as engine:
            store.holding = True
            asyncio.get_running_loop().call_later(3, lambda: setattr(store, "holding", False))
            asyncio.get_running_loop().call_later(3, store.let_go)
            began = seconds()
            with pytest.raises(TimedOut, match="order/a did not end within 5 s; it goes on"):
                await engine.run(order, "ann", id="a", timeout=5)
            assert seconds() - began == pytest.approx(5)

    run(main())


def test_a_caller_that_waits_for_no_end_still_waits_for_its_start() -> None:
    async def main() -> None:
        async with engine_on(LateStore(), order) as engine:
            with pytest.raises(TimedOut):
                await engine.run(order, "ann", id="a", timeout=0)
            assert await engine.get(order, "a").result() == "ann"

    run(main())


def test_a_run_that_nobody_gave_an_id_is_named_with_the_one_it_got() -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, order) as engine:
            store.holding = True
            with pytest.raises(StoreError) as error:
                await engine.run(order, "ann", timeout=5)
            store.holding = False
            store.let_go()
            [info] = [info async for info in engine.runs()]
            assert f"whether order/{info.id} was started" in str(error.value)

    run(main())


def test_a_time_or_an_id_that_cannot_be_starts_nothing() -> None:
    async def main() -> None:
        async with client_on(VirtualStore()) as client:
            with pytest.raises(InvalidOptions, match="timeout"):
                await client.run(order, "ann", id="a", timeout=-1)
            with pytest.raises(InvalidId):
                await client.run(order, "ann", id="", timeout=5)
            assert [info async for info in client.runs()] == []

    run(main())


@pytest.mark.parametrize("away", ["silent", "failing", "failing, and written all the same"])
def test_a_start_that_was_given_up_leaves_nothing_half_written(away: str) -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, order) as engine:
            go_away(store, away)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await engine.start(order, "ann", id="a")
            come_back(store)
            again = await engine.start(order, "ann", id="a", if_exists="join")
            assert await again.result() == "ann"
            assert [info.id async for info in engine.runs()] == ["a"]
        assert done == ["ann"]
        await whole_for_another(store)

    run(main())


@pytest.mark.parametrize("away", ["silent", "failing"])
def test_an_event_that_was_given_up_counts_once_when_it_is_emitted_again(away: str) -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, noted) as engine:
            go_away(store, away)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(5):
                    await engine.emit(Ordered(), idempotency_key="e1")
            come_back(store)
            await engine.emit(Ordered(), idempotency_key="e1")
            await engine.get(noted, "e1").result()
        assert done == ["e1"]

    run(main())


def go_away(store: LateStore, how: str) -> None:
    if how == "silent":
        store.holding = True
    else:
        store.failures.extend(down(1000))
    store.written_all_the_same = "written" in how


def come_back(store: LateStore) -> None:
    store.failures.clear()
    store.holding = False
    store.let_go()


async def whole_for_another(store: LateStore) -> None:
    """What is recorded is all that another engine needs."""
    async with engine_on(store, order) as other:
        assert isinstance(other, Engine)
        assert await other.get(order, "a").result() == "ann"
