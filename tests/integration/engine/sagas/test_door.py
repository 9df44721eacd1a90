"""Sagas over a store: resumed by other engines, in other versions, with one outcome for a key."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import Client, Context, Engine, Saga, SagaContext, blocking, step, workflow
from perdure.model.errors import InvalidRequest
from perdure.stores.memory import MemoryStore
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import run, settle
from tests.virtual.stores import VirtualStore


class Order(msgspec.Struct):
    id: str
    total: int = 1


@step
async def charge(order: Order) -> str:
    return f"ch_{order.id}"


class Desk:
    """A saga whose last step waits until it is let go; what ran, in order."""

    def __init__(self) -> None:
        self.ran: list[Any] = []
        self.open = False

    async def first(self, ctx: SagaContext[Order]) -> str:
        self.ran.append("first")
        ctx.set("note", ctx.get("by"))
        return f"for {ctx.payload.id}"

    async def last(self, ctx: SagaContext[Order]) -> list[Any]:
        if not self.open:
            await asyncio.Event().wait()
        self.ran.append("last")
        return [ctx.payload, ctx.output("first"), ctx.get("note"), ctx.get("by")]

    async def undo(self, ctx: SagaContext[Order]) -> None:
        self.ran.append((ctx.payload.total, ctx.output("first"), ctx.get("note")))

    def saga(self, **options: Any) -> Saga[Order]:
        made = Saga("order", Order, **options).step("first", self.first, undo=self.undo)
        return made.step("last", self.last)


@pytest.mark.rule("S-21", "D-20", "S-8")
def test_a_resumed_run_sees_payload_notes_and_outputs_and_repeats_no_step_that_completed() -> None:
    async def main() -> tuple[int, Any, list[Any]]:
        desk, store = Desk(), VirtualStore()
        made = desk.saga()
        async with killed(store, made) as engine:
            await engine.start(made, Order("1", 7), id="a", metadata={"by": "web"})
            await settle()
        desk.open = True
        async with engine_on(store, made) as again:
            resumed = await again.resume()
            return resumed, (await again.get(made, "a").result())["last"], desk.ran

    resumed, last, ran = run(main())
    assert resumed == 1
    assert last == [{"id": "1", "total": 7}, "for 1", "web", "web"]
    assert ran == ["first", "last"]


@pytest.mark.rule("SX-14")
def test_a_saga_that_is_not_registered_is_not_resumed_and_its_version_is_recorded() -> None:
    async def main() -> list[Any]:
        desk, store = Desk(), VirtualStore()
        made = desk.saga(version="v7")
        async with killed(store, made) as engine:
            await engine.start(made, Order("1"), id="a")
            await settle()
        async with engine_on(store) as other:
            found: list[Any] = [await other.resume()]
            found.append((await other.get("order", "a").describe()).version)
            found.append(await other.get("order", "a").status())
        return found

    assert run(main()) == [0, "v7", "running"]


@pytest.mark.rule("SX-14", "D-36")
def test_a_run_keeps_its_plan_and_takes_the_functions_of_the_registered_saga() -> None:
    async def main() -> Any:
        desk, store = Desk(), VirtualStore()
        old = desk.saga()
        async with killed(store, old) as engine:
            await engine.start(old, Order("1"), id="a")
            await settle()
        desk.open = True
        new = old.step("more", desk.first)
        async with engine_on(store, new) as again:
            kept = await again.get("order", "a").result()
            return sorted(kept), sorted([*await again.run(new, Order("2"), id="b")])

    assert run(main()) == (["first", "last"], ["first", "last", "more"])


@pytest.mark.rule("D-36")
def test_a_run_whose_function_is_gone_stalls_and_goes_on_when_it_is_there_again() -> None:
    async def main() -> list[Any]:
        desk, store = Desk(), VirtualStore()
        found: list[Any] = []
        made = desk.saga()
        async with killed(store, made) as engine:
            await engine.start(made, Order("1"), id="a")
            await settle()
        desk.open = True
        without = Saga("order", Order).step("first", desk.first, undo=desk.undo)
        async with engine_on(store, without) as other:
            await settle()
            found.append((await other.get("order", "a").describe()).stalled)
        async with engine_on(store, made) as again:
            found.append(len(await again.get(made, "a").result()))
        return found

    why, outputs = run(main())
    assert "step last of saga order is not registered here" in why
    assert outputs == 2


@pytest.mark.rule("D-20")
def test_an_undo_after_a_crash_sees_payload_output_and_notes() -> None:
    async def main() -> list[Any]:
        desk, store = Desk(), VirtualStore()
        made = desk.saga()
        async with killed(store, made) as engine:
            await engine.start(made, Order("1", 7), id="a", metadata={"by": "web"})
            await settle()
        client = engine_on(store, made)
        async with client as again:
            await again.get(made, "a").cancel("enough")
            await again.get(made, "a").status()
            for _ in range(50):
                if (await again.get(made, "a").status()) != "running":
                    break
                await asyncio.sleep(1)
            return [await again.get(made, "a").status(), *desk.ran]

    assert run(main()) == ["canceled", "first", (7, "for 1", "web")]


@pytest.mark.rule("S-23", "D-19")
def test_two_processes_and_one_key_are_one_run_with_one_outcome(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    desk = Desk()
    desk.open = True
    made = desk.saga()

    async def main() -> list[Any]:
        async with Engine(url, [made]) as one, Engine(url, [made]) as two, Client(url) as third:
            outcomes = await asyncio.gather(
                *(who.run(made, Order("1"), idempotency_key="k") for who in (one, two, third, one))
            )
            known = [(info.workflow, info.id) async for info in third.runs()]
            return [*outcomes, known]

    *outcomes, known = asyncio.run(main())
    assert known == [("order", "k")]
    assert all(outcome == outcomes[0] for outcome in outcomes)
    assert desk.ran == ["first", "last"]


def test_a_process_without_the_code_starts_a_saga_by_its_name(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    desk = Desk()
    desk.open = True

    async def main() -> Any:
        async with Engine(url, [desk.saga()]), Client(url) as client:
            return await client.run("order", {"id": "1", "total": 2}, id="a")

    assert asyncio.run(main())["first"] == "for 1"


@workflow(max_duration="1h")
async def outer(ctx: Context, order: Order) -> str:
    out = await ctx.child(PAYS, order)
    return out.of(charge)


PAYS = Saga("pays", Order).step("charge", charge)


def test_the_blocking_engine_runs_sagas_and_emits() -> None:
    made = PAYS.started_by(Order)
    with blocking.Engine(MemoryStore(), [made, outer]) as engine:
        assert engine.run(made, Order("1")).of(charge) == "ch_1"
        assert engine.run(outer, Order("2")) == "ch_2"
        engine.emit(Order("3"), idempotency_key="e")
        assert engine.get(made, "e").result() == {"charge": "ch_3"}


@pytest.mark.rule("S-22")
def test_the_store_behind_a_saga_is_a_port_whose_default_is_memory() -> None:
    class Counting(MemoryStore):
        """Any store does that keeps the port's promises."""

        def __init__(self) -> None:
            super().__init__()
            self.starts = 0

        def start(self, rows: Any, done: Any, /) -> None:
            self.starts += len(rows)
            super().start(rows, done)

    async def main() -> int:
        store = Counting()
        async with Engine(store, [PAYS]) as engine:
            await engine.run(PAYS, Order("1"))
        return store.starts

    assert asyncio.run(main()) == 1


def test_a_saga_does_not_begin_in_its_middle_and_nothing_is_recorded() -> None:
    async def main() -> None:
        made = Desk().saga()
        async with Engine("memory:", [made]) as engine:
            with pytest.raises(InvalidRequest, match="start_node is for graphs"):
                await engine.start(made, Order("1"), id="1", start_node="last")
            assert not [one async for one in engine.runs()]

    asyncio.run(main())
