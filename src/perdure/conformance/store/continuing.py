"""Runs that go on as new: loading begins at a later row, and all else stays (rule 14)."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.stores.port import Store
from perdure.stores.rows import Continue, Finish, Park, Release

LARGE = b'"' + b"x" * 5000 + b'"'


class Continuing(StoreBed):
    """Cases about Continue."""

    @scene
    async def test_loading_begins_at_the_row_it_rides_on(self, store: Store) -> None:
        await start(store, new(1, owner="w1", deadline=5))
        await commit(store, row(1, 2, payloads=(LARGE,)))
        await commit(store, row(1, 3, payloads=(LARGE,), change=Continue(77)))
        await commit(store, row(1, 4))
        loaded = await store.load(key(1))
        assert [r.seq for r in loaded.journal] == [3, 4]
        assert (loaded.run.base_seq, loaded.run.deadline) == (3, 77)
        assert [r.seq for r in await store.rows(key(1), 0, 10)] == [3, 4]
        assert await store.payloads(key(1), [(3, 0)]) == [LARGE]
        saved = await store.save(key(1))
        assert ([r.seq for r in saved.journal], [p.seq for p in saved.payloads]) == ([3, 4], [3])
        await commit(store, row(1, 5, change=Continue()))
        loaded = await store.load(key(1))
        assert ([r.seq for r in loaded.journal], loaded.run.deadline) == ([5], None)

    @scene
    async def test_the_run_keeps_its_owner_its_mail_and_what_was_read(self, store: Store) -> None:
        # scenario 51
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        await store.post([message(1, id) for id in "abc"])
        await commit(store, row(1, 2, read=1, change=Continue()))
        loaded = await store.load(key(1))
        assert (loaded.run.owner, loaded.run.epoch, loaded.run.status) == ("w1", 0, "running")
        assert [mail.id for mail in loaded.mail] == ["b", "c"]
        assert dict(await store.mailed("w1")) == {key(1): 3}
        [again] = await store.post([message(1, "a")])
        assert (again.outcome, again.n) == ("duplicate", 1)
        assert await store.park("w1", [Park(key(1), 0, 1, 5)]) == [False]

    @scene
    async def test_the_rows_before_are_no_longer_anybodys_and_a_purge_forgets_them(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        for seq in range(2, 700):
            await commit(store, row(1, seq))
        await commit(store, row(1, 700, change=Continue()), row(2, 2, payloads=(LARGE,)))
        assert await store.purge(9) == 0
        assert [r.seq for r in (await store.load(key(1))).journal] == [700]
        assert await commit(store, row(1, 701)) == ["accepted"]
        assert [r.seq for r in (await store.load(key(2))).journal] == [1, 2]
        assert await store.payloads(key(2), [(2, 0)]) == [LARGE]

    @scene
    async def test_it_is_refused_to_who_is_not_the_owner_at_this_epoch(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"), new(3))
        await commit(store, row(2, 2, change=Finish("completed", 5)))
        assert (
            await commit(
                store,
                row(1, 2, writer="w2", change=Continue()),
                row(2, 3, change=Continue()),
                row(3, 2, change=Continue()),
            )
            == ["refused"] * 3
        )
        assert await commit(store, row(1, 2, epoch=1, change=Continue())) == ["refused"]
        loaded = await store.load(key(1))
        assert ([r.seq for r in loaded.journal], loaded.run.base_seq) == ([1], 1)

    @scene
    async def test_the_same_row_again_is_mine_and_begins_nothing_anew(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        first = row(1, 2, change=Continue(5))
        assert await commit(store, first) == ["accepted"]
        assert await commit(store, row(1, 3)) == ["accepted"]
        assert await commit(store, first) == ["mine"]
        assert [r.seq for r in (await store.load(key(1))).journal] == [2, 3]

    @scene
    async def test_it_goes_with_other_rows_and_their_changes(self, store: Store) -> None:
        await start(store, *[new(n, owner="w1") for n in range(4)])
        assert await commit(
            store,
            row(0, 2, change=Continue()),
            row(1, 2, change=Finish("completed", 5)),
            row(2, 2, change=Release(5)),
            row(3, 2),
        ) == ["accepted"] * 4  # fmt: skip
        runs = [(await store.load(key(n))).run for n in range(4)]
        assert [run.base_seq for run in runs] == [2, 1, 1, 1]
        assert [run.status for run in runs] == ["running", "completed", "running", "running"]

    @scene
    async def test_a_takeover_moves_the_fence_from_the_new_beginning_on(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, change=Continue()))
        self.kill(store, "w1")
        await store.register(worker("w2"))
        loaded = await store.load(key(1))
        assert [r.seq for r in loaded.journal] == [2, 3]
        [claim] = await store.claim_runs("w2", ["order"], 9)
        assert await commit(store, row(1, 3, change=Continue())) == ["refused"]
        again = row(1, 4, writer="w2", epoch=claim.epoch, change=Continue())
        assert await commit(store, again) == ["accepted"]
        assert [r.seq for r in (await store.load(key(1))).journal] == [4]
