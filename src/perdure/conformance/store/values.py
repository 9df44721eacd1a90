"""Bytes are kept as they are: large payloads, outputs, definitions."""

from __future__ import annotations

from perdure.codec.values import PAYLOAD_LIMIT
from perdure.conformance.bed import StoreBed, refused, scene
from perdure.conformance.rows import (
    commit,
    definition,
    key,
    new,
    row,
    start,
)
from perdure.model.errors import NotFound, PayloadMissing
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish


class Values(StoreBed):
    """Cases about bytes, definitions, and what is not there."""

    @scene
    async def test_large_payloads_are_kept_apart_and_found_by_row_and_number(
        self, store: Store
    ) -> None:
        first = row(1, 1, payloads=[b"input", b""])
        await start(store, new(1, owner="w1", first=first), new(2, owner="w1"))
        big = b"\x00\xff" * (PAYLOAD_LIMIT // 2)
        await commit(store, row(1, 2, payloads=[b"a", big]), row(2, 2, payloads=[b"other"]))
        refs = [(2, 1), (1, 0), (2, 0), (1, 1), (2, 1)]
        assert await store.payloads(key(1), refs) == [big, b"input", b"a", b"", big]
        assert await store.payloads(key(1), []) == []

    @scene
    async def test_a_payload_that_is_gone_is_told_apart_from_a_store_that_is_away(
        self, store: Store
    ) -> None:
        await start(store, new(1, first=row(1, 1, payloads=[b"x"])))
        for ref in ((2, 0), (1, 1), (7, 0)):
            with refused(PayloadMissing, "payload"):
                await store.payloads(key(1), [(1, 0), ref])
        with refused(PayloadMissing, "payload"):
            await store.payloads(key(99), [(1, 0)])

    @scene
    async def test_a_large_output_is_known_by_its_place(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        ends = Finish("completed", NEVER - 1, output_ref=1)
        await commit(store, row(1, 2, payloads=[b"x", b"out"], change=ends))
        run = await store.describe("order", "run-1")
        assert (run.output, run.output_at) == (None, (2, 1))
        assert await store.payloads(key(1), [(2, 1)]) == [b"out"]

    @scene
    async def test_bodies_with_any_text_come_back_as_they_were(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        body = '{"text":"ö 💳 \\u0000 \\" \\\\ \x7f \u2028"}'.encode()
        await commit(store, row(1, 2, body=body))
        assert (await store.load(key(1))).journal[1].body == body

    @scene
    async def test_a_long_row_comes_back_as_it_was(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, body=b'"' + b"x" * 1_000_000 + b'"'))
        assert len((await store.load(key(1))).journal[1].body) == 1_000_002

    @scene
    async def test_extreme_times_and_numbers_come_back(self, store: Store) -> None:
        await start(store, new(1, owner="w1", deadline=NEVER))
        await commit(store, row(1, 2, at=NEVER, read=NEVER, commit=NEVER))
        loaded = await store.load(key(1))
        assert (loaded.run.deadline, loaded.journal[1].at, loaded.journal[1].read) == (
            NEVER, NEVER, NEVER,
        )  # fmt: skip

    @scene
    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        await start(store, new(1))
        with refused(NotFound, key(2).hex()):
            await store.load(key(2))
        with refused(NotFound, "'run-2' of order"):
            await store.describe("order", "run-2")
        with refused(NotFound, "'run-1' of other"):
            await store.describe("other", "run-1")
        with refused(NotFound, "hash h9"):
            await store.definition("h9")

    @scene
    async def test_a_definition_is_published_once_under_its_hash(self, store: Store) -> None:
        await store.define(definition("h1", b"first"))
        await store.define(definition("h1", b"again"))
        await store.define(definition("h2", b""))
        assert await store.definition("h1") == definition("h1", b"first")
        assert await store.definition("h2") == definition("h2", b"")

    @scene
    async def test_the_latest_definition_of_a_name_is_the_one_created_last(
        self, store: Store
    ) -> None:
        with refused(NotFound, "order"):
            await store.latest_definition("order")
        for hash, created in (("h1", 5), ("h2", 9), ("h3", 7), ("h4", 9)):
            await store.define(definition(hash, created=created))
        assert (await store.latest_definition("order")).hash == "h4"
        with refused(NotFound):
            await store.latest_definition("orde")

    @scene
    async def test_runs_and_definitions_are_there_after_a_restart(self, store: Store) -> None:
        await store.define(definition())
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, payloads=[b"kept"]))
        again = await self.restarted(store)
        assert await again.definition("h1") == definition()
        loaded = await again.load(key(1))
        assert (loaded.run.owner, len(loaded.journal)) == ("w1", 2)
        assert await again.payloads(key(1), [(2, 0)]) == [b"kept"]
