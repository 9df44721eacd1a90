"""Versions: what is published, what new runs get, what a label means."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from perdure.client.client import Client
from perdure.client.definitions import version_of
from perdure.flow.step import step
from perdure.graph.definition import Graph
from perdure.model.errors import InvalidRequest, NotFound
from perdure.stores.memory import MemoryStore
from tests.virtual.engines import client_on, engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step
async def work() -> str:
    return "done"


def version(label: str | None, text: str = "") -> Graph:
    """A document of one name."""
    more = {} if label is None else {"version": label}
    return graph("one", [task("a", "work")], description=text or label or "", **more)


ONE, TWO = version("1"), version("2")


async def labels(client: Client) -> list[tuple[str, bool]]:
    return [(info.version, info.current) for info in await client.definitions()]


@pytest.mark.rule("D-36")
def test_what_is_published_last_is_current_and_can_be_taken_back() -> None:
    async def main() -> None:
        async with client_on(VirtualStore()) as client:
            assert (await client.publish(ONE)).current
            await client.publish(TWO)
            assert await labels(client) == [("2", True), ("1", False)]
            info = await client.publish(ONE)
            assert (info.version, info.hash, info.kind) == ("1", ONE.hash, "graph")
            assert await labels(client) == [("1", True), ("2", False)]
            started = await client.start("one", id="a")
            assert (await started.describe()).version == "1"

    run(main())


def test_an_engine_that_is_given_a_known_version_does_not_make_it_current() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            await client.publish(TWO)
            await client.publish(ONE)
            async with engine_on(store, TWO, work) as engine:
                await engine.start(TWO, id="a")
            assert await labels(client) == [("1", True), ("2", False)]

    run(main())


def test_runs_are_counted_by_version() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE, work) as engine:
            await engine.run(ONE, id="a")
        async with client_on(store) as client:
            await client.start(TWO, id="b")
            known = await client.definitions("one")
            found = {info.version: (info.running, info.ended) for info in known}
            assert found == {"1": (0, 1), "2": (1, 0)}
            assert await client.definitions("other") == []

    run(main())


def test_a_label_with_other_content_is_refused_unless_it_is_meant() -> None:
    async def main() -> None:
        async with client_on(VirtualStore()) as client:
            await client.publish(ONE)
            other = version("1", "other")
            with pytest.raises(InvalidRequest, match="give the document another `version`"):
                await client.publish(other)
            assert await labels(client) == [("1", True)]
            await client.publish(other, relabel=True)
            assert await labels(client) == [("1", True), ("1", False)]
            found = await version_of(client._store, "one", "1")
            assert found.hash == other.hash

    run(main())


def test_a_version_is_found_by_label_and_by_hash() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with Client(store) as client:
            for one in (ONE, TWO):
                await client.publish(one)
            for wanted in ("1", ONE.hash, ONE.hash[:6]):
                assert (await version_of(store, "one", wanted)).hash == ONE.hash
            assert (await version_of(store, "one", None)).hash == TWO.hash
            with pytest.raises(NotFound, match="one has no version 3; there are 2, 1"):
                await version_of(store, "one", "3")
            with pytest.raises(NotFound, match="no definition with the name none"):
                await version_of(store, "none", "1")
            alike = msgspec.structs.replace(
                await store.definition(ONE.hash), hash=ONE.hash[:-1] + "x"
            )
            await store.define(alike)
            with pytest.raises(InvalidRequest, match="several versions of one begin with"):
                await version_of(store, "one", ONE.hash[:8])

    asyncio.run(main())


def test_a_history_is_read_on_from_a_row() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), ONE, work) as engine:
            started = await engine.start(ONE, id="a")
            await started.result()
            whole = [record async for record in started.history()]
            first = whole[0]["seq"]
            rest = [record async for record in started.history(after=first)]
            assert rest == [record for record in whole if record["seq"] > first]
            assert rest != []
            last = whole[-1]["seq"]
            assert [record async for record in started.history(after=last)] == []

    run(main())
