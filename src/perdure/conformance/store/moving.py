"""Moving: a run is saved whole, and restored whole or not at all. And reading on in a journal."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from perdure.conformance.bed import StoreBed, refused, scene
from perdure.conformance.rows import (
    BORN,
    commit,
    definition,
    key,
    message,
    new,
    row,
    start,
    worker,
)
from perdure.model.errors import NotFound, StoreError
from perdure.stores.moving import SavedRun
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish


async def populate(store: Store) -> None:
    """Run 1: ended, with payloads, mail and a definition. Run 2: goes on."""
    await store.define(definition())
    await store.register(worker("w1"))
    await start(store, new(1, owner="w1", metadata=b'{"a":"b"}'), new(2, owner="w1"))
    await store.post([message(1, "m1"), message(1, "m2", body=None)])
    end = Finish("failed", NEVER - 1, failure=b'{"kind":"x","message":"y"}', output_ref=1)
    await commit(store, row(1, 2, read=1, payloads=[b"one", b"\x00\xff"]))
    await commit(store, row(1, 3, read=1, payloads=[b"", b"out"], change=end))


def moved(saved: SavedRun, n: int, **fields: Any) -> SavedRun:
    """The run under another key and id."""
    run = msgspec.structs.replace(saved.run, key=key(n), id=f"run-{n}", **fields)
    return msgspec.structs.replace(saved, run=run)


class Moving(StoreBed):
    """Cases about saving and restoring, and about following."""

    @scene
    async def test_what_is_restored_is_what_was_saved(self, store: Store) -> None:
        await populate(store)
        saved = await store.save(key(1))
        assert saved.run == await store.describe("order", "run-1")
        assert [(r.seq, r.writer, r.commit, r.read) for r in saved.journal] == [
            (1, "w1", 1, 0), (2, "w1", 2, 1), (3, "w1", 3, 1),
        ]  # fmt: skip
        assert [(p.seq, p.n, p.value) for p in saved.payloads] == [
            (2, 0, b"one"), (2, 1, b"\x00\xff"), (3, 0, b""), (3, 1, b"out"),
        ]  # fmt: skip
        assert [(m.n, m.id, m.body) for m in saved.mail] == [(1, "m1", b"1"), (2, "m2", None)]
        assert saved.definition == definition()
        assert (await store.restore(moved(saved, 7), NEVER)).outcome == "created"
        again = await store.save(key(7))
        assert moved(again, 1) == saved
        assert (await store.load(key(7))).mail == saved.mail[1:]
        assert await store.payloads(key(7), [(3, 1)]) == [b"out"]

    @scene
    async def test_a_run_that_is_there_is_left_as_it_is(self, store: Store) -> None:
        await populate(store)
        saved = await store.save(key(1))
        changed = msgspec.structs.replace(saved, journal=saved.journal[:1])
        assert (await store.restore(changed, NEVER)).outcome == "mine"
        other = msgspec.structs.replace(changed.run, key=key(7))
        found = await store.restore(msgspec.structs.replace(changed, run=other), NEVER)
        assert (found.outcome, found.key) == ("exists", key(1))
        assert await store.save(key(1)) == saved
        with refused(NotFound):
            await store.load(key(7))

    @scene
    async def test_a_restored_run_is_nobodys_until_something_is_posted(self, store: Store) -> None:
        await populate(store)
        await store.restore(moved(await store.save(key(2)), 7, owner="w1", ready_at=1), None)
        run = await store.describe("order", "run-7")
        assert (run.owner, run.ready_at, run.status) == (None, NEVER, "running")
        self.advance(store, 10**15)
        await store.sweep("w1")
        assert key(7) not in {c.key for c in await store.claim_runs("w1", ["order"], 100)}
        await store.post([message(7, "m1", kind="unpause")])
        assert key(7) in {c.key for c in await store.claim_runs("w1", ["order"], 100)}

    @scene
    async def test_a_message_that_came_before_is_a_duplicate_after(self, store: Store) -> None:
        await populate(store)
        saved = await store.save(key(1))
        await store.restore(moved(saved, 7), NEVER)
        assert (await store.post([message(7, "m2")]))[0].outcome == "duplicate"

    @scene
    async def test_a_restored_run_can_be_retried_and_is_purged(self, store: Store) -> None:
        await populate(store)
        saved = await store.save(key(1))
        await store.restore(moved(saved, 7), BORN + 1)
        await store.restore(moved(saved, 8), NEVER)
        claim = await store.claim_finished("w1", "order", "run-8")
        await store.give_back("w1", claim, None)
        assert claim.epoch == saved.run.epoch + 1
        assert await store.purge(10) == 1
        with refused(NotFound):
            await store.save(key(7))

    @scene
    async def test_what_cannot_be_written_whole_is_not_written(self, store: Store) -> None:
        await populate(store)
        saved = await store.save(key(1))
        twice = msgspec.structs.replace(moved(saved, 7), journal=[*saved.journal, *saved.journal])
        with suppress(StoreError):
            await store.restore(twice, NEVER)
            return  # a store may take the same rows for one
        with refused(NotFound):
            await store.load(key(7))

    @scene
    async def test_crashes_in_a_row_go_with_the_run(self, store: Store) -> None:
        await populate(store)
        self.kill(store, "w1")
        await store.register(worker("w2"))
        saved = await store.save(key(2))
        assert saved.run.crashes == 1
        await store.restore(moved(saved, 7), None)
        assert (await store.describe("order", "run-7")).crashes == 1

    @scene
    async def test_a_restored_definition_is_never_the_latest_of_others(self, store: Store) -> None:
        await populate(store)
        saved = await store.save(key(1))
        late = definition("h2", created=BORN + 9)
        moving = msgspec.structs.replace(moved(saved, 7, hash="h2"), definition=late)
        await store.restore(moving, NEVER)
        assert (await store.latest_definition("order")).hash == "h1"
        assert (await store.definition("h2")).source == late.source
        alone = msgspec.structs.replace(late, hash="h3", name="other")
        await store.restore(
            msgspec.structs.replace(moved(saved, 8, hash="h3"), definition=alone), NEVER
        )
        assert await store.latest_definition("other") == alone

    @scene
    async def test_rows_after_a_number_are_read_in_order(self, store: Store) -> None:
        await populate(store)
        assert [r.seq for r in await store.rows(key(1), 0, 10)] == [1, 2, 3]
        assert await store.rows(key(1), 1, 10) == (await store.load(key(1))).journal[1:]
        assert [r.seq for r in await store.rows(key(1), 0, 2)] == [1, 2]
        assert [r.seq for r in await store.rows(key(1), 2, 2)] == [3]
        assert await store.rows(key(1), 3, 10) == []
        assert await store.rows(key(9), 0, 10) == []

    @scene
    async def test_a_run_that_is_not_there_cannot_be_saved(self, store: Store) -> None:
        with refused(NotFound, key(9).hex()):
            await store.save(key(9))
