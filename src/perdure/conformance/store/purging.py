"""Purging: what is past its time is forgotten whole, and nothing else is touched (rule 15)."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, refused, scene
from perdure.conformance.rows import commit, key, message, new, outcomes, row, start
from perdure.model.errors import NotFound, StoreError
from perdure.stores.answers import Posted
from perdure.stores.port import PURGE_AFTER, RunQuery, Store
from perdure.stores.rows import NEVER, Finish


class Purging(StoreBed):
    """Cases about forgetting."""

    @scene
    async def test_a_run_past_its_time_is_gone_with_everything_of_its(self, store: Store) -> None:
        now = store.now()
        await start(store, *[new(n, owner="w1") for n in (1, 2)])
        await store.post([message(1, "a")])
        ends = Finish("completed", now + PURGE_AFTER + 30_000_000)
        batch = [row(n, 2, at=now, read=1, payloads=[b"x"], change=ends) for n in (1, 2)]
        await commit(store, *batch)
        self.advance(store, PURGE_AFTER)
        assert await store.purge(9) == 0
        self.advance(store, 60_000_000)
        assert await store.purge(9) == 2
        assert await store.purge(9) == 0
        with refused(NotFound):
            await store.load(key(1))
        with refused(NotFound):
            await store.describe("order", "run-1")
        with refused(StoreError):
            await store.payloads(key(1), [(2, 0)])
        assert list(await store.mail(key(1), 0)) == []
        assert await store.post([message(1, "a")]) == [Posted("missing")]
        assert await store.find(RunQuery()) == []
        # Its id may be used again, and what was of it is nobody's.
        assert await outcomes(store, new(3, id="run-1"), new(1, id="other")) == ["created"] * 2
        assert list((await store.load(key(1))).mail) == []
        assert len((await store.load(key(1))).journal) == 1

    @scene
    async def test_nothing_that_ended_lately_is_purged_whatever_its_time(
        self, store: Store
    ) -> None:
        now = store.now()
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, at=now, change=Finish("completed", 0)))
        assert await store.purge(9) == 0
        self.advance(store, PURGE_AFTER - 60_000_000)
        assert await store.purge(9) == 0
        # A late answer is still recognised.
        again = row(1, 2, at=now, change=Finish("completed", 0))
        assert await commit(store, again) == ["mine"]
        self.advance(store, 60_000_000)
        assert await store.purge(9) == 1

    @scene
    async def test_what_has_not_ended_and_what_is_kept_for_ever_stays(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2), new(3, owner="w1"))
        await commit(store, row(3, 2, at=0, change=Finish("failed", NEVER)))
        self.advance(store, 100 * PURGE_AFTER)
        assert await store.purge(9) == 0
        assert len(await store.find(RunQuery())) == 3

    @scene
    async def test_the_longest_due_go_first_and_no_more_than_asked(self, store: Store) -> None:
        await start(store, *[new(n, owner="w1") for n in range(300)])
        ends = [row(n, 2, at=0, change=Finish("completed", 1000 - n)) for n in range(300)]
        await commit(store, *ends)
        assert [await store.purge(limit) for limit in (-1, 0, 1)] == [0, 0, 1]
        with refused(NotFound):
            await store.load(key(299))
        assert await store.purge(120) == 120
        left = {run.key for run in await store.find(RunQuery(limit=999))}
        assert left == {key(n) for n in range(179)}
        assert await store.purge(999) == 179
        assert await store.purge(999) == 0

    @scene
    async def test_a_row_for_a_run_that_was_purged_is_refused(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, at=0, change=Finish("completed", 0)))
        assert await store.purge(1) == 1
        assert await commit(store, row(1, 2)) == ["refused"]
        assert await commit(store, row(1, 3, change=Finish("completed", 0))) == ["refused"]
