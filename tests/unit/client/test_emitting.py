"""A client emits events: they start what the store knows to be bound to them, as it was published
last, durably and once for a key; nothing where that cannot be known."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from perdure import Client, Engine, InvalidRequest, Saga, SagaContext, Unsupported, blocking
from perdure.errors import PerdureError, StoreError
from perdure.stores.memory import MemoryStore
from tests.virtual.engines import client_on, engine_on
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore, down

DONE: list[tuple[str, Any]] = []


@pytest.fixture(autouse=True)
def as_before() -> None:
    DONE.clear()


class OrderPlaced(msgspec.Struct):
    id: str


class RushOrderPlaced(OrderPlaced):
    hours: int = 1


class Unrelated(msgspec.Struct):
    id: str


async def note(ctx: SagaContext[Any]) -> None:
    DONE.append((ctx.workflow, ctx.payload))


def saga(name: str, event: type[Any], **options: Any) -> Saga[Any]:
    return Saga(name, event, **options).step("note", note).started_by(event)


ship, rush = saga("ship", OrderPlaced), saga("rush", RushOrderPlaced)


async def known_to(store: Any, *sagas: Saga[Any]) -> Any:
    """The store, once an engine with these sagas was there."""
    async with engine_on(store, *sagas):
        pass
    await asyncio.sleep(1)  # what is published later is later
    return store


async def runs_of(client: Client) -> list[tuple[str, str]]:
    return sorted([(info.workflow, info.id) async for info in client.runs()])


@pytest.mark.rule("S-20")
def test_an_event_starts_durably_what_the_store_knows_to_be_bound_to_its_class_or_a_base() -> None:
    async def main() -> None:
        store = await known_to(VirtualStore(), ship, rush)
        heard: list[Any] = []
        async with client_on(store) as client:
            client.listen(OrderPlaced)(heard.append)
            await client.emit(OrderPlaced("1"))
            await client.emit(RushOrderPlaced("2", 3))
            await client.emit(Unrelated("3"))
            infos = [info async for info in client.runs()]
        assert heard == [OrderPlaced("1"), RushOrderPlaced("2", 3)]
        assert sorted((info.workflow, info.metadata["trigger"], info.status) for info in infos) == [
            ("rush", "RushOrderPlaced", "running"),
            ("ship", "OrderPlaced", "running"),
            ("ship", "RushOrderPlaced", "running"),
        ]
        assert DONE == [], "whoever emits is gone, and nobody has worked yet"
        async with engine_on(store, ship, rush):
            await settle()
        assert ("rush", RushOrderPlaced("2", 3)) in DONE
        assert len(DONE) == 3

    run(main())


@pytest.mark.rule("S-20", "S-23")
def test_an_event_with_a_key_starts_each_saga_once_whoever_emits_it() -> None:
    async def main() -> None:
        store = await known_to(VirtualStore(), ship, rush)
        event = RushOrderPlaced("1")
        async with client_on(store) as client, client_on(store) as other:
            await asyncio.gather(
                *[one.emit(event, idempotency_key="e1") for one in (client, other) * 3]
            )
            assert await runs_of(client) == [("rush", "e1"), ("ship", "e1")]
        async with engine_on(store, ship, rush) as engine:
            await engine.emit(event, idempotency_key="e1")
            await settle()
        assert len(DONE) == 2

    run(main())


def test_a_store_that_does_not_answer_leaves_it_to_the_caller_to_emit_again_with_the_key() -> None:
    async def main() -> None:
        store = await known_to(LateStore(), ship, rush)
        async with client_on(store) as client:
            store.failures.extend(down(100))
            with pytest.raises(StoreError):
                await client.emit(RushOrderPlaced("1"), idempotency_key="e1")
            store.failures.clear()
            await client.emit(RushOrderPlaced("1"), idempotency_key="e1")
            assert await runs_of(client) == [("rush", "e1"), ("ship", "e1")]

    run(main())


def test_the_version_that_was_published_last_says_what_starts_it() -> None:
    unbound = Saga("ship", OrderPlaced).step("note", note)

    async def main() -> None:
        store = await known_to(VirtualStore(), ship)
        await known_to(store, unbound)
        async with client_on(store) as client:
            await client.emit(OrderPlaced("1"))
            assert await runs_of(client) == []
            await client.publish(ship)
            await client.emit(OrderPlaced("1"), idempotency_key="e1")
            assert await runs_of(client) == [("ship", "e1")]

    run(main())


@pytest.mark.rule("S-23")
def test_a_saga_that_was_renamed_is_started_once_and_not_again_where_it_was_started_before() -> (
    None
):
    renamed = saga("shipping", OrderPlaced, aliases=["ship"])

    async def main() -> None:
        store = await known_to(VirtualStore(), ship)
        async with client_on(store) as client:
            await client.emit(OrderPlaced("1"), idempotency_key="e1")
            await known_to(store, renamed)
            await client.emit(OrderPlaced("1"), idempotency_key="e1")
            await client.emit(OrderPlaced("2"), idempotency_key="e2")
            assert await runs_of(client) == [("ship", "e1"), ("shipping", "e2")]
            await client.publish(ship)  # the renaming is taken back
            await client.emit(OrderPlaced("3"), idempotency_key="e3")
            found = await runs_of(client)
            assert found == [("ship", "e1"), ("ship", "e3"), ("shipping", "e2")]
        async with engine_on(store, renamed):
            await settle()
        assert sorted(event.id for _, event in DONE) == ["1", "2", "3"]

    run(main())


@pytest.mark.parametrize("on", [client_on, lambda store: engine_on(store, ship, saga("x", int))])
def test_what_is_no_event_or_no_payload_is_refused_with_nothing_started(on: Any) -> None:
    wrong = Saga("wrong", int).step("note", note).started_by(OrderPlaced)  # type: ignore[arg-type]

    async def main() -> None:
        store = await known_to(VirtualStore(), ship)
        async with on(store) as client:
            for event in (OrderPlaced, None):
                with pytest.raises(InvalidRequest, match="give an event"):
                    await client.emit(event)
            with pytest.raises(InvalidRequest, match="idempotency_key: run id ''"):
                await client.emit(OrderPlaced("1"), idempotency_key="")
            assert await runs_of(client) == []
        async with engine_on(store, ship, wrong) as engine:
            with pytest.raises(InvalidRequest):
                await engine.emit(OrderPlaced("1"))
            assert await runs_of(engine) == [], "one that cannot be started starts no other"

    run(main())


def test_an_event_that_cannot_be_written_starts_nothing() -> None:
    unwritable = type("OrderPlaced", (), {"__init__": lambda self: setattr(self, "at", object())})

    async def main() -> None:
        store = await known_to(VirtualStore(), ship, saga("also", OrderPlaced))
        async with client_on(store) as client:
            with pytest.raises(InvalidRequest):
                await client.emit(unwritable())
            assert await runs_of(client) == []

    run(main())


def test_a_client_that_is_closed_takes_no_event() -> None:
    async def main() -> None:
        client = client_on(await known_to(VirtualStore(), ship))
        async with client:
            pass
        with pytest.raises(PerdureError, match="this client or engine is closed"):
            await client.emit(OrderPlaced("1"))

    run(main())


class Elsewhere:
    """A driver of another engine, which is asked nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def definition(self, name: str, /) -> Any:
        self.asked.append("definition")

    async def start(self, request: Any, /) -> bool:
        self.asked.append("start")
        return True

    async def result(self, workflow: str, id: str, /) -> Any: ...

    async def status(self, workflow: str, id: str, /) -> Any: ...

    async def signal(self, *args: Any) -> None: ...

    async def cancel(self, workflow: str, id: str, reason: str, /) -> None: ...


def test_a_driver_that_cannot_say_which_sagas_there_are_refuses_before_anything_happens() -> None:
    async def main() -> None:
        driver, heard = Elsewhere(), list[Any]()
        async with Client(driver) as client:
            client.listen(OrderPlaced)(heard.append)
            with pytest.raises(Unsupported, match="Elsewhere cannot say which sagas an event"):
                await client.emit(OrderPlaced("1"))
        assert driver.asked == heard == []

    run(main())


class Wrapped:
    """A driver that is told of starts, over one of a store."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.started: list[str] = []

    async def start(self, request: Any, /) -> bool:
        self.started.append(request.definition.name)
        return bool(await self.inner.start(request))

    def unwrap(self) -> Any:
        return self.inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def test_a_driver_around_one_of_a_store_is_told_of_what_an_event_starts() -> None:
    async def main() -> None:
        store = await known_to(VirtualStore(), ship)
        driver = Wrapped(client_on(store).driver)
        async with Client(driver) as client:  # type: ignore[arg-type]
            await client.emit(OrderPlaced("1"))
        assert driver.started == ["ship"]

    run(main())


def test_synchronous_programs_emit_as_well() -> None:
    store = MemoryStore()

    async def main() -> None:
        async with Engine(store, [ship]):
            pass

    asyncio.run(main())
    with blocking.Client(store) as client:
        client.emit(OrderPlaced("1"), idempotency_key="e1")
        assert [info.id for info in client.runs(workflow="ship")] == ["e1"]
