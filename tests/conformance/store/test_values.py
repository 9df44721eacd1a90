"""Bytes are kept as they are: large payloads, outputs, definitions."""

from __future__ import annotations

import pytest

from perdure.codec.values import PAYLOAD_LIMIT
from perdure.model.errors import NotFound, StoreError
from perdure.stores.port import NEVER, Finish, Store
from tests.conformance.store.kit import (
    Case,
    commit,
    definition,
    key,
    new,
    play,
    row,
    start,
)


def test_large_payloads_are_kept_apart_and_found_by_row_and_number(case: Case) -> None:
    async def scene(store: Store) -> None:
        first = row(1, 1, payloads=[b"input", b""])
        await start(store, new(1, owner="w1", first=first), new(2, owner="w1"))
        big = b"\x00\xff" * (PAYLOAD_LIMIT // 2)
        await commit(store, row(1, 2, payloads=[b"a", big]), row(2, 2, payloads=[b"other"]))
        refs = [(2, 1), (1, 0), (2, 0), (1, 1), (2, 1)]
        assert await store.payloads(key(1), refs) == [big, b"input", b"a", b"", big]
        assert await store.payloads(key(1), []) == []

    play(case, scene)


@pytest.mark.parametrize("ref", [(2, 0), (1, 1), (7, 0)])
def test_a_missing_payload_is_a_store_error_that_names_it(case: Case, ref: tuple[int, int]) -> None:
    async def scene(store: Store) -> None:
        await start(store, new(1, first=row(1, 1, payloads=[b"x"])))
        with pytest.raises(StoreError, match="payload"):
            await store.payloads(key(1), [(1, 0), ref])
        with pytest.raises(StoreError, match="payload"):
            await store.payloads(key(99), [(1, 0)])

    play(case, scene)


def test_a_large_output_is_known_by_its_place(case: Case) -> None:
    async def scene(store: Store) -> None:
        await start(store, new(1, owner="w1"))
        ends = Finish("completed", NEVER - 1, output_ref=1)
        await commit(store, row(1, 2, payloads=[b"x", b"out"], change=ends))
        run = await store.describe("order", "run-1")
        assert (run.output, run.output_at) == (None, (2, 1))
        assert await store.payloads(key(1), [(2, 1)]) == [b"out"]

    play(case, scene)


def test_bodies_with_any_text_come_back_as_they_were(case: Case) -> None:
    async def scene(store: Store) -> None:
        await start(store, new(1, owner="w1"))
        body = '{"text":"ö 💳 \\u0000 \\" \\\\ \x7f \u2028"}'.encode()
        await commit(store, row(1, 2, body=body))
        assert (await store.load(key(1))).journal[1].body == body

    play(case, scene)


def test_a_long_row_comes_back_as_it_was(case: Case) -> None:
    async def scene(store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, body=b'"' + b"x" * 1_000_000 + b'"'))
        assert len((await store.load(key(1))).journal[1].body) == 1_000_002

    play(case, scene)


def test_extreme_times_and_numbers_come_back(case: Case) -> None:
    async def scene(store: Store) -> None:
        await start(store, new(1, owner="w1", deadline=NEVER))
        await commit(store, row(1, 2, at=NEVER, read=NEVER, commit=NEVER))
        loaded = await store.load(key(1))
        assert (loaded.run.deadline, loaded.journal[1].at, loaded.journal[1].read) == (
            NEVER, NEVER, NEVER,
        )  # fmt: skip

    play(case, scene)


def test_what_is_not_there_is_not_found(case: Case) -> None:
    async def scene(store: Store) -> None:
        await start(store, new(1))
        with pytest.raises(NotFound, match=key(2).hex()):
            await store.load(key(2))
        with pytest.raises(NotFound, match="'run-2' of order"):
            await store.describe("order", "run-2")
        with pytest.raises(NotFound, match="'run-1' of other"):
            await store.describe("other", "run-1")
        with pytest.raises(NotFound, match="hash h9"):
            await store.definition("h9")

    play(case, scene)


def test_a_definition_is_published_once_under_its_hash(case: Case) -> None:
    async def scene(store: Store) -> None:
        await store.define(definition("h1", b"first"))
        await store.define(definition("h1", b"again"))
        await store.define(definition("h2", b""))
        assert await store.definition("h1") == definition("h1", b"first")
        assert await store.definition("h2") == definition("h2", b"")

    play(case, scene)


def test_the_latest_definition_of_a_name_is_the_one_created_last(case: Case) -> None:
    async def scene(store: Store) -> None:
        with pytest.raises(NotFound, match="order"):
            await store.latest_definition("order")
        for hash, created in (("h1", 5), ("h2", 9), ("h3", 7), ("h4", 9)):
            await store.define(definition(hash, created=created))
        assert (await store.latest_definition("order")).hash == "h4"
        with pytest.raises(NotFound):
            await store.latest_definition("orde")

    play(case, scene)


def test_runs_and_definitions_are_there_after_a_restart(case: Case) -> None:
    async def before(store: Store) -> None:
        await store.define(definition())
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, payloads=[b"kept"]))

    async def after(store: Store) -> None:
        assert await store.definition("h1") == definition()
        loaded = await store.load(key(1))
        assert (loaded.run.owner, len(loaded.journal)) == ("w1", 2)
        assert await store.payloads(key(1), [(2, 0)]) == [b"kept"]

    play(case, before)
    play(case, after)
