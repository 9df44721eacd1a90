"""Parking: a waiting run is let go only if nothing was missed, and is found when it is due."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish, Park, Release


class Parking(StoreBed):
    """Cases about letting go without a row."""

    @scene
    async def test_a_parked_run_has_no_owner_and_is_claimed_when_due(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        later = store.now() + 3_600_000_000
        parks = [Park(key(1), 0, 0, later), Park(key(2), 0, 0, 5)]
        assert list(await store.park("w1", parks)) == [True, True]
        assert list(await store.park("w1", [])) == []
        run = (await store.load(key(1))).run
        assert (run.owner, run.epoch, run.ready_at, run.status) == (None, 0, later, "running")
        assert len((await store.load(key(1))).journal) == 1
        [claim] = await store.claim_runs("w2", ["order"], 9)
        assert (claim.key, claim.epoch) == (key(2), 1)

    @scene
    async def test_a_run_with_unread_mail_is_not_parked(self, store: Store) -> None:
        # scenario 47
        await start(store, new(1, owner="w1"))
        await store.post([message(1, "a")])
        assert list(await store.park("w1", [Park(key(1), 0, 0, NEVER)])) == [False]
        await commit(store, row(1, 2, read=1))
        assert list(await store.park("w1", [Park(key(1), 0, 0, NEVER)])) == [False]
        assert list(await store.park("w1", [Park(key(1), 0, 1, NEVER)])) == [True]
        await store.post([message(1, "b")])
        [claim] = await store.claim_runs("w1", ["order"], 1)
        assert claim.key == key(1)

    @scene
    async def test_mail_read_in_memory_alone_counts_as_unread(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await store.post([message(1, "a")])
        assert list(await store.park("w1", [Park(key(1), 0, 1, NEVER)])) == [False]
        assert (await store.load(key(1))).run.owner == "w1"

    @scene
    async def test_only_the_owner_parks_and_only_at_his_epoch(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"), new(3))
        wrong = [
            Park(key(1), 1, 0, 5), Park(key(3), 0, 0, 5), Park(key(9), 0, 0, 5),
        ]  # fmt: skip
        assert list(await store.park("w1", wrong)) == [False] * 3
        assert list(await store.park("w2", [Park(key(1), 0, 0, 5)])) == [False]
        await commit(store, row(2, 2, change=Finish("completed", NEVER)))
        assert list(await store.park("w1", [Park(key(2), 0, 0, 5)])) == [False]
        run = (await store.load(key(2))).run
        assert (run.status, run.ready_at) == ("completed", NEVER)

    @scene
    async def test_a_zombie_parks_nothing_that_was_taken_from_him(self, store: Store) -> None:
        # scenarios 84, 93
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        self.kill(store, "w1")
        await store.register(worker("w2"))
        assert list(await store.park("w1", [Park(key(1), 0, 0, NEVER)])) == [False]
        [claim] = await store.claim_runs("w2", ["order"], 1)
        for epoch in (0, 1, claim.epoch):
            assert list(await store.park("w1", [Park(key(1), epoch, 0, NEVER)])) == [False]
        assert (await store.load(key(1))).run.owner == "w2"

    @scene
    async def test_parked_again_and_again_a_run_is_found_by_its_last_time(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"))
        later = store.now() + 3_600_000_000
        await commit(store, row(1, 2, change=Release(5)))
        for n in range(200):
            [claim] = await store.claim_runs("w1", ["order"], 9)
            at = 5 if n < 199 else later
            assert list(await store.park("w1", [Park(key(1), claim.epoch, 0, at)])) == [True]
        assert list(await store.claim_runs("w1", ["order"], 9)) == []
        self.advance(store, 3_600_000_000)
        assert len(await store.claim_runs("w1", ["order"], 9)) == 1
