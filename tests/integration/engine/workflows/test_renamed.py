"""Workflows that were renamed: runs recorded under a name of before are the new code's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import (
    AlreadyStarted,
    Canceled,
    Context,
    DefinitionError,
    Failure,
    NotFound,
    RunFailed,
    Signal,
    step,
    workflow,
)
from perdure.model.errors import DuplicateName, InvalidOptions
from tests.virtual.engines import client_on, engine_on, killed
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
paid = Signal("paid", int)
done: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@step
async def note(text: str) -> str:
    done.append(text)
    return text


async def _pays(ctx: Context, order: str) -> list[Any]:
    await note(f"{order} came")
    amount = await ctx.wait(paid)
    if amount == 13:
        raise Failure("unlucky", kind="unlucky")
    await note(f"{order} was paid")
    return [ctx.name, order, amount]


async def _step() -> None: ...


old = workflow(max_duration="30d", name="checkout-v1")(_pays)
new = workflow(max_duration="30d", name="checkout", aliases=["checkout-v1", "till"])(_pays)


@STORES
def test_a_run_of_the_old_name_goes_on_with_the_new_code_and_keeps_its_name(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with killed(store, old, note) as engine:
            await engine.start(old, "a", id="1")
            await asyncio.sleep(1)
        async with engine_on(store, new, note) as engine:
            heard: list[Any] = []
            engine.observe(_Heard(heard))
            await asyncio.sleep(60)  # it is in memory, or parked and found by its name
            here = engine.get(new, "1")
            assert here.workflow == "checkout"
            assert await here.status() == "running"
            assert here.workflow == "checkout-v1"
            await engine.get(new, "1").signal(paid, 5)
            assert await engine.get(new, "1").result() == ["checkout-v1", "a", 5]
            assert set(heard) == {"checkout-v1"}
            assert done == ["a came", "a was paid"]

    run(main())


class _Heard:
    def __init__(self, heard: list[Any]) -> None:
        self._heard = heard

    def entered(self, live: Any, run: Any) -> None:
        self._heard += [live.workflow, live.definition.name, run.definition]

    def recorded(self, live: Any, transition: Any) -> None: ...


@STORES
def test_a_run_of_the_old_name_is_joined_and_never_made_a_second_time(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with client_on(store) as client:
            await client.start(old, "a", id="1")
        async with engine_on(store, new, note) as engine:
            with pytest.raises(AlreadyStarted, match="checkout-v1/1 is there already") as refused:
                await engine.start(new, "a", id="1")
            assert str(refused.value.run) == "checkout-v1/1"
            joined = await engine.start(new, "a", id="1", if_exists="join")
            await joined.signal(paid, 7)
            assert await engine.run(new, "a", idempotency_key="1") == ["checkout-v1", "a", 7]
            by_name = await engine.start("till", "b", id="2")
            assert by_name.workflow == "checkout", "a name of before starts what it is now"
            async with client_on(store) as client:
                await client.start(new, "b", id="2", if_exists="join")
                with pytest.raises(AlreadyStarted):
                    await client.start(new, "a", id="1")
            names = sorted([f"{one.workflow}/{one.id}" async for one in engine.runs()])
            assert names == ["checkout-v1/1", "checkout/2"]

    run(main())


def test_runs_are_listed_under_all_names_the_newest_first_page_by_page() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            for n in range(250):
                await client.start(old if n % 3 else new, "x", id=str(n))
                await asyncio.sleep(0.001)
            await client.start(workflow(max_duration=None, name="other")(_pays), "x", id="o")
            listed = [one async for one in client.runs(workflow=new)]
            assert [one.id for one in listed] == [str(n) for n in reversed(range(250))]
            assert {one.workflow for one in listed} == {"checkout", "checkout-v1"}
            assert len([1 async for _ in client.runs(workflow="checkout")]) == 84

    run(main())


@STORES
def test_a_run_of_the_old_name_is_retried_paused_and_canceled_as_one_of_the_new(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with engine_on(store, old, note) as engine:
            failed = await engine.start(old, "a", id="1")
            await failed.signal(paid, 13)
            with pytest.raises(RunFailed, match="unlucky"):
                await failed.result()
            await engine.start(old, "b", id="2")
        async with engine_on(store, new, note) as engine:
            again = engine.get(new, "1")
            await again.retry(from_node="note")
            with pytest.raises(RunFailed, match="unlucky"):
                await again.result()  # the signal that it took is kept
            assert done == ["a came", "b came", "a came"]
            assert (await again.describe()).workflow == "checkout-v1"
            other = engine.get(new, "2")
            await other.pause()
            await other.unpause()
            await other.cancel("enough")
            with pytest.raises(Canceled, match="enough"):
                await other.result()
            with pytest.raises(NotFound, match=r"no run '3' of checkout$"):
                await engine.get(new, "3").status()

    run(main())


async def _asks(ctx: Context, child: Any) -> list[Any]:
    ids = [await ctx.spawn(child, "s"), await ctx.spawn(child, "t", id="mine")]
    await ctx.wait(paid)
    return [*ids, await ctx.child(child, "u"), await ctx.child(child, "t", id="theirs")]


@workflow(max_duration="30d", name="parent")
async def asked_old(ctx: Context) -> list[Any]:
    return await _asks(ctx, old)


@workflow(max_duration="30d", name="parent")
async def asked_new(ctx: Context) -> list[Any]:
    return await _asks(ctx, new)


@STORES
def test_runs_that_asked_for_it_by_its_old_name_go_on_and_join_what_is_there(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        async with killed(store, asked_old, old, note) as engine:
            await engine.start(asked_old, id="p")
            theirs = await engine.start(old, "x", id="theirs")
            await theirs.signal(paid, 1)
            await theirs.result()
        async with engine_on(store, asked_new, new, note) as engine:
            parent = engine.get(asked_new, "p")
            assert await parent.status() == "running"
            await parent.signal(paid, 0)
            third = "parent/p/checkout#3"
            await asyncio.sleep(5)
            await engine.get(new, third).signal(paid, 2)
            assert await parent.result() == [
                "parent/p/checkout-v1", "mine", ["checkout", "u", 2], ["checkout-v1", "x", 1],
            ]  # fmt: skip
            names = sorted([f"{r.workflow}/{r.id}" async for r in engine.runs(workflow=new)])
            assert names == [
                "checkout-v1/mine", "checkout-v1/parent/p/checkout-v1", "checkout-v1/theirs",
                f"checkout/{third}",
            ]  # fmt: skip
        async with engine_on(store, asked_new, new, note) as engine:
            assert (await engine.get(asked_new, "p").describe()).stalled is None

    run(main())


def test_an_alias_that_something_else_has_is_a_declaration_error() -> None:
    from perdure.flow.registry import Registry

    also = workflow(max_duration=None, name="shop", aliases=["till"])(_pays)
    named = workflow(max_duration=None, name="till")(_pays)
    for things in ([new, also], [also, new], [new, named], [new, step(name="till")(_step)]):
        with pytest.raises(DuplicateName, match="'till' is an alias of"):
            Registry.of(things)
    known = Registry.of([new])
    assert known.definition("till") is known.definition("checkout") is new
    assert list(known.definitions) == ["checkout"]
    wrongs: list[Any] = [["checkout"], ["A b"], "checkout-v1", [3]]
    for wrong in wrongs:
        with pytest.raises(DefinitionError):
            workflow(max_duration=None, name="checkout", aliases=wrong)(_pays)
    with pytest.raises(InvalidOptions, match="is the name it has"):
        workflow(max_duration=None, name="checkout", aliases=["checkout"])(_pays)
