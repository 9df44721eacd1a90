"""Events start sagas: durably, once for a key, and whatever listeners do."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from perdure import Engine, InvalidRequest, Saga, SagaContext
from perdure.errors import PerdureError
from perdure.stores.memory import MemoryStore
from perdure.testing import TestEngine
from tests.virtual.engines import engine_on
from tests.virtual.loop import run, settle
from tests.virtual.stores import VirtualStore


class OrderPlaced(msgspec.Struct):
    id: str


class RushOrderPlaced(OrderPlaced):
    hours: int = 1


class Unrelated(msgspec.Struct):
    id: str


def sagas(done: list[Any]) -> tuple[Saga[Any], Saga[Any]]:
    async def note(ctx: SagaContext[OrderPlaced]) -> None:
        done.append((ctx.workflow, ctx.payload))

    return (
        Saga("ship", OrderPlaced).step("note", note).started_by(OrderPlaced),
        Saga("rush", RushOrderPlaced).step("note", note).started_by(RushOrderPlaced),
    )


@pytest.mark.rule("S-20")
def test_an_event_starts_what_is_bound_to_its_class_or_to_one_it_derives_from() -> None:
    done: list[Any] = []

    async def main() -> list[Any]:
        async with TestEngine(sagas(done)) as engine:
            await engine.emit(OrderPlaced("1"))
            await engine.emit(RushOrderPlaced("2", 3))
            await engine.emit(Unrelated("3"))
            await engine.settle()
            return [(info.workflow, info.metadata["trigger"]) async for info in engine.runs()]

    infos = run(main())
    assert sorted(infos) == [
        ("rush", "RushOrderPlaced"),
        ("ship", "OrderPlaced"),
        ("ship", "RushOrderPlaced"),
    ]
    assert ("rush", RushOrderPlaced("2", 3)) in done
    assert done.count(("ship", OrderPlaced("1"))) == done.count(("ship", OrderPlaced("2"))) == 1


@pytest.mark.rule("S-20")
def test_the_emitter_waits_for_no_run_and_the_runs_outlive_its_engine() -> None:
    async def main() -> tuple[str, list[Any]]:
        store, going, seen = VirtualStore(), asyncio.Event(), []

        async def wait(ctx: SagaContext[OrderPlaced]) -> str:
            await going.wait()
            seen.append(ctx.payload.id)
            return "done"

        slow = Saga("slow", OrderPlaced).step("wait", wait).started_by(OrderPlaced)
        engine = engine_on(store, slow, grace=0)
        async with engine:
            await engine.emit(OrderPlaced("1"), idempotency_key="e1")
            status = await engine.get(slow, "e1").status()
        going.set()
        async with engine_on(store, slow) as again:
            assert await again.resume() == 1
            await again.get(slow, "e1").result()
        return status, seen

    assert run(main()) == ("running", ["1"])


@pytest.mark.rule("S-23")
def test_an_event_with_a_key_starts_each_saga_once() -> None:
    done: list[Any] = []

    async def main() -> None:
        async with TestEngine(sagas(done)) as engine:
            for _ in range(3):
                await engine.emit(OrderPlaced("1"), idempotency_key="event-1")
            await asyncio.gather(
                *[engine.emit(OrderPlaced("2"), idempotency_key="event-2") for _ in range(3)]
            )
            await engine.settle()

    run(main())
    assert sorted(payload.id for _, payload in done) == ["1", "2"]


@pytest.mark.rule("SX-12")
def test_listeners_hear_of_what_was_emitted_and_hurt_nobody() -> None:
    done: list[Any] = []

    async def main() -> list[Any]:
        heard: list[Any] = []
        async with TestEngine(sagas(done)) as engine:

            @engine.listen(OrderPlaced)
            async def broken(event: OrderPlaced) -> None:
                raise ValueError("a listener")

            @engine.listen(OrderPlaced)
            def hear(event: OrderPlaced) -> None:
                heard.append(event)

            await engine.emit(RushOrderPlaced("1"))
            await engine.emit(Unrelated("2"))
            await settle()
        return heard

    assert run(main()) == [RushOrderPlaced("1")]
    assert len(done) == 2


@pytest.mark.rule("SX-11")
def test_an_engine_that_closes_refuses_new_work_and_events_first_and_lets_attempts_end() -> None:
    async def main() -> list[Any]:
        store, going, seen = VirtualStore(), asyncio.Event(), []

        async def work(ctx: SagaContext[OrderPlaced]) -> None:
            await going.wait()
            seen.append("worked")

        made = Saga("work", OrderPlaced).step("work", work).started_by(OrderPlaced)
        engine = engine_on(store, made, grace=60)
        await engine.__aenter__()
        await engine.emit(OrderPlaced("1"), idempotency_key="1")
        await settle()
        closing = asyncio.ensure_future(engine.__aexit__(None, None, None))
        await settle()
        with pytest.raises(PerdureError, match="closed: the event was not taken"):
            await engine.emit(OrderPlaced("2"))
        with pytest.raises(PerdureError, match="the engine is closed"):
            await engine.start(made, OrderPlaced("3"))
        assert not closing.done()
        going.set()
        await closing
        async with engine_on(store, made) as again:
            seen.append(await again.get(made, "1").status())
            seen += [info.id async for info in again.runs()]
        return seen

    assert run(main()) == ["worked", "completed", "1"]


def test_what_is_no_event_is_refused() -> None:
    made = Saga("ship", OrderPlaced).step("a", lambda ctx: None)

    async def main() -> None:
        wrong: Any = OrderPlaced
        async with TestEngine([made]) as engine:
            for event in (wrong, None):
                with pytest.raises(InvalidRequest, match="give an event"):
                    await engine.emit(event)
            with pytest.raises(InvalidRequest, match="idempotency_key: run id ''"):
                await engine.emit(OrderPlaced("1"), idempotency_key="")
            with pytest.raises(InvalidRequest, match="has control characters"):
                await engine.start(made, OrderPlaced("1"), idempotency_key="a\n")
        with pytest.raises(PerdureError, match="not at work yet"):
            await Engine(MemoryStore(), [made]).emit(OrderPlaced("1"))

    run(main())


@pytest.mark.rule("S-23", "D-19")
def test_a_second_start_with_a_key_gets_the_first_run_and_its_outcome(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tries: list[str] = []

    async def fail(ctx: SagaContext[OrderPlaced]) -> str:
        tries.append(ctx.payload.id)
        return f"for {ctx.payload.id}"

    made = Saga("once", OrderPlaced).step("fail", fail)

    async def main() -> list[Any]:
        async with TestEngine([made]) as engine:
            both = await asyncio.gather(
                engine.run(made, OrderPlaced("1"), idempotency_key="k"),
                engine.run(made, OrderPlaced("1"), idempotency_key="k"),
            )
            other = await engine.run(made, OrderPlaced("2"), idempotency_key="k")
            handle = await engine.start(made, OrderPlaced("1"), idempotency_key="k")
            with pytest.raises(InvalidRequest, match="not both"):
                await engine.start(made, OrderPlaced("1"), id="k", idempotency_key="k")
            return [*both, other, handle.id]

    first = {"fail": "for 1"}
    assert run(main()) == [first, first, first, "k"]
    assert tries == ["1"]
    [warning] = [r.getMessage() for r in caplog.records if "another input" in r.getMessage()]
    assert warning == "once/k was started with another input and keeps that one"
