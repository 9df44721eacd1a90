"""Versions of a definition: which is the latest, and how many runs each has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import msgspec

from perdure.conformance.bed import StoreBed, refused, scene
from perdure.conformance.rows import BORN, commit, definition, new, row, start
from perdure.model.errors import InvalidRequest, NotFound
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, ChildStart, Finish, StoredDefinition


async def hashes(store: Store, name: str | None = None) -> list[str]:
    """What is listed, in its order."""
    return [seen.hash for seen in await store.definitions(name)]


class Versions(StoreBed):
    """Cases about publishing, and about listing what was published."""

    @scene
    async def test_what_is_published_is_the_latest_also_when_it_was_known(
        self, store: Store
    ) -> None:
        for n, hash in enumerate(("h1", "h2", "h3")):
            await store.publish(definition(hash, created=BORN + n, version=hash))
            assert (await store.latest_definition("order")).hash == hash
        await store.publish(definition("h1", created=BORN + 9, version="h1"))
        assert (await store.latest_definition("order")).hash == "h1"
        assert (await store.definition("h1")).created == BORN + 9
        assert await hashes(store) == ["h1", "h3", "h2"]

    @scene
    async def test_a_clock_that_went_back_does_not_undo_what_is_published(
        self, store: Store
    ) -> None:
        await store.publish(definition("h1", created=BORN + 50))
        await store.publish(definition("h2", created=BORN, version="2"))
        assert (await store.latest_definition("order")).hash == "h2"
        assert (await store.definition("h2")).created == BORN + 51

    @scene
    async def test_a_label_that_is_known_with_other_content_is_refused(self, store: Store) -> None:
        await store.publish(definition("h1"))
        with refused(InvalidRequest):
            await store.publish(definition("h2", created=BORN + 1))
        assert await hashes(store) == ["h1"]
        await store.publish(definition("h1", created=BORN + 2))
        await store.publish(definition("h3", created=BORN + 3, version="2"))
        other = msgspec.structs.replace(definition("h9"), name="another")
        await store.publish(other)
        await store.publish(definition("h2", created=BORN + 4), relabel=True)
        assert await hashes(store, "order") == ["h2", "h3", "h1"]

    @scene
    async def test_of_two_that_publish_one_label_at_once_one_is_refused(self, store: Store) -> None:
        def publish(hash: str) -> Awaitable[None]:
            return store.publish(definition(hash))

        tried = [f"h{n}" for n in range(8)]
        said = await asyncio.gather(*map(publish, tried), return_exceptions=True)
        assert sum(isinstance(one, InvalidRequest) for one in said) == 7
        assert await hashes(store) == [tried[said.index(None)]]

    @scene
    async def test_what_is_published_keeps_its_source(self, store: Store) -> None:
        await store.define(definition("h1", b"first"))
        await store.publish(definition("h1", b"again", created=BORN + 1))
        assert (await store.definition("h1")).source == b"first"

    @scene
    async def test_how_long_runs_may_take_is_what_was_said_last(self, store: Store) -> None:
        def lasting(limit: int | None, created: int = BORN) -> StoredDefinition:
            made = definition("h1", created=created)
            return msgspec.structs.replace(made, max_duration=limit)

        await store.define(definition("h1"))
        assert (await store.definition("h1")).max_duration is None
        for limit in (5, 7, None, 9):
            await store.define(lasting(limit, BORN + 3))
            assert await store.definition("h1") == lasting(limit)
        await store.publish(lasting(8, BORN + 3))
        assert await store.latest_definition("order") == lasting(8, BORN + 3)
        # Who asks for a run of it has it from the store, maybe a while ago.
        child = new(2, id="child")
        asked = ChildStart("t", "node", ("order", "child"), child, lasting(5))
        await start(store, new(1, owner="w1"))
        assert await commit(store, row(1, 2, outgoing=[asked])) == ["accepted"]
        assert (await store.describe("order", "child")).key == child.key
        assert (await store.definition("h1")).max_duration == 8

    @scene
    async def test_making_a_published_definition_known_changes_nothing(self, store: Store) -> None:
        await store.publish(definition("h1"))
        await store.publish(definition("h2", created=BORN + 1, version="2"))
        await store.define(definition("h1", created=BORN + 2))
        assert (await store.latest_definition("order")).hash == "h2"

    @scene
    async def test_versions_are_listed_by_name_with_their_runs(self, store: Store) -> None:
        other = msgspec.structs.replace(definition("h9", created=BORN + 7), name="another")
        for one in (definition("h1"), definition("h2", created=BORN + 1), other):
            await store.define(one)
        runs = [new(n, owner="w1") for n in range(5)]
        for n, run in enumerate(runs):
            run.hash = "h1" if n < 4 else "h2"
        await start(store, *runs)
        await commit(store, row(0, 2, change=Finish("failed", NEVER - 1)))
        await commit(store, row(1, 2, change=Finish("completed", NEVER - 1)))
        seen = await store.definitions()
        assert [(one.name, one.hash, one.running, one.ended) for one in seen] == [
            ("another", "h9", 0, 0), ("order", "h2", 1, 0), ("order", "h1", 2, 2),
        ]  # fmt: skip
        assert (seen[0].version, seen[0].kind, seen[0].created) == ("1", "graph", BORN + 7)
        assert await hashes(store, "order") == ["h2", "h1"]

    @scene
    async def test_nothing_is_listed_where_nothing_is_known(self, store: Store) -> None:
        assert await hashes(store) == []
        await store.define(definition())
        assert await hashes(store, "orde") == []
        with refused(NotFound):
            await store.latest_definition("orde")

    @scene
    async def test_of_two_with_one_time_the_one_that_came_last_is_first(self, store: Store) -> None:
        for hash in ("h1", "h2"):
            await store.define(definition(hash))
        assert await hashes(store) == ["h2", "h1"]
        assert (await store.latest_definition("order")).hash == "h2"

    @scene
    async def test_the_latest_of_a_kind_are_those_that_are_the_latest_of_their_names(
        self, store: Store
    ) -> None:
        def known(hash: str, name: str, kind: str, n: int) -> StoredDefinition:
            made = definition(hash, hash.encode(), created=BORN + n, version=hash)
            return msgspec.structs.replace(made, name=name, kind=kind, max_duration=n)

        assert list(await store.latest_definitions("saga")) == []
        last = known("h4", "order", "saga", 7)
        for one in (
            known("h1", "order", "saga", 7), known("h2", "shop", "saga", 1),
            known("h3", "shop", "graph", 2), known("h5", "a", "saga", 3), last,
        ):  # fmt: skip
            await store.define(one)
        sagas = await store.latest_definitions("saga")
        assert [(one.name, one.hash) for one in sagas] == [("a", "h5"), ("order", "h4")]
        assert sagas[1] == last
        assert [one.hash for one in await store.latest_definitions("graph")] == ["h3"]
        await store.publish(known("h2", "shop", "saga", 9))
        assert [one.name for one in await store.latest_definitions("saga")] == [
            "a", "order", "shop",
        ]  # fmt: skip
        assert list(await store.latest_definitions("graph")) == []
