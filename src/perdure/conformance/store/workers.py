"""Workers: the dead are seen, what they held goes on, and crashes are counted (rules 2, 8, 9)."""

from __future__ import annotations

from perdure.codec.journal import decode_row
from perdure.conformance.bed import StoreBed, refused, scene
from perdure.conformance.rows import HASH, commit, key, new, row, start, worker
from perdure.kernel.actions import Claimed
from perdure.model.errors import StoreError
from perdure.stores.answers import Claim, WorkerSeen
from perdure.stores.port import LEASE, Store
from perdure.stores.rows import NEVER, Finish, Release, RunChange, Stall

DONE = Finish("completed", NEVER - 1)


class Workers(StoreBed):
    """Cases about workers that die, leave and come."""

    @scene
    async def test_the_living_keep_their_runs(self, store: Store) -> None:
        assert await store.register(worker("w1")) == 0
        await start(store, new(1, owner="w1"))
        assert await store.register(worker("w2")) == 0
        assert (await store.load(key(1))).run.owner == "w1"

    @scene
    async def test_a_dead_worker_s_runs_are_freed_and_the_fence_moves(self, store: Store) -> None:
        # scenarios 83, 86
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"), new(2, owner="w1"), new(3, ready_at=NEVER))
        await commit(store, row(2, 2, at=NEVER - 5, read=4))
        self.kill(store, "w1")
        before = store.now()
        assert await store.register(worker("w2")) == 2
        for n, seq in ((1, 2), (2, 3)):
            loaded = await store.load(key(n))
            run, last = loaded.run, loaded.journal[-1]
            assert (run.owner, run.epoch, run.crashes) == (None, 1, 1)
            assert before <= run.ready_at <= store.now()
            assert last.seq == seq
            [transition] = decode_row(last.body)
            assert transition.actions == [Claimed("w2")]
            assert transition.at == last.at
        second = (await store.load(key(2))).journal
        # A transition's time never goes back, and what was read stays read.
        assert (second[-1].at, second[-1].read) == (NEVER - 5, 4)
        assert (await store.load(key(3))).run.epoch == 0

    @scene
    async def test_a_death_after_registering_is_found_by_the_sweep(self, store: Store) -> None:
        # scenarios 61, 86
        await store.register(worker("w1"))
        await store.register(worker("w2"))
        await start(store, new(1, owner="w1"), new(2, owner="w2"))
        assert await store.sweep("w2") == 0
        self.kill(store, "w1")
        assert await store.sweep("w2") == 1
        assert (await store.load(key(1))).run.owner is None
        assert (await store.load(key(2))).run.owner == "w2"
        assert await store.sweep("w2") == 0

    @scene
    async def test_the_dead_worker_who_was_not_dead_is_refused(self, store: Store) -> None:
        # scenario 93
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        self.kill(store, "w1")
        await store.register(worker("w2"))
        assert await commit(store, row(1, 2), row(2, 2, change=DONE)) == ["refused"] * 2
        # Even at a free number what changes the run is refused: it is not his any more.
        assert await commit(store, row(2, 3, change=DONE)) == ["refused"]

    @scene
    async def test_owners_that_never_registered_count_as_dead(self, store: Store) -> None:
        await start(store, new(1, owner="nobody"))
        assert await store.register(worker("w1")) == 1
        assert (await store.load(key(1))).run.owner is None

    @scene
    async def test_finished_and_parked_runs_of_the_dead_stay_as_they_are(
        self, store: Store
    ) -> None:
        # scenario 103
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in range(3)])
        changes: list[RunChange] = [DONE, Release(NEVER - 9), Stall("stuck")]
        await commit(store, *[row(n, 2, change=change) for n, change in enumerate(changes)])
        self.kill(store, "w1")
        assert await store.register(worker("w2")) == 0
        assert [len((await store.load(key(n))).journal) for n in range(3)] == [2, 2, 2]

    @scene
    async def test_more_than_a_hundred_runs_are_all_freed(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in range(250)])
        self.kill(store, "w1")
        assert await store.register(worker("w2")) == 250
        assert len(await store.claim_runs("w2", ["order"], 1000)) == 250

    @scene
    async def test_crashes_count_only_without_progress(self, store: Store) -> None:
        # scenario 74
        async def crash(store: Store, dead: str, next: str) -> int:
            self.kill(store, dead)
            await store.register(worker(next))
            return (await store.load(key(1))).run.crashes

        await store.register(worker("w0"))
        await start(store, new(1, owner="w0"))
        for n in range(3):
            assert await crash(store, f"w{n}", f"w{n + 1}") == n + 1
            assert [c.key for c in await store.claim_runs(f"w{n + 1}", ["order"], 5)] == [key(1)]
        await commit(store, row(1, 5, writer="w3"))
        assert (await store.load(key(1))).run.crashes == 0
        assert (await store.describe("order", "run-1")).crashes == 0
        assert await crash(store, "w3", "w4") == 1

    @scene
    async def test_a_worker_that_leaves_frees_its_runs_without_a_crash(self, store: Store) -> None:
        await store.register(worker("w1"))
        await store.register(worker("w2"))
        await start(store, new(1, owner="w1"), new(2, owner="w2"))
        await commit(store, row(1, 2))
        await store.unregister("w1")
        run = (await store.load(key(1))).run
        assert (run.owner, run.crashes, len((await store.load(key(1))).journal)) == (None, 0, 2)
        assert run.ready_at <= store.now()
        assert (await store.load(key(2))).run.owner == "w2"
        assert await store.claim_runs("w2", ["order"], 5) == [Claim(key(1), "order", HASH, 1)]
        await store.unregister("w1")

    @scene
    async def test_an_id_is_registered_once(self, store: Store) -> None:
        await store.register(worker("w1"))
        with refused(StoreError, "registered already"):
            await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        assert await store.register(worker("w2")) == 0

    @scene
    async def test_the_registered_are_listed_while_they_live(self, store: Store) -> None:
        await store.register(worker("w1"))
        await store.register(worker("w2"))
        assert await store.workers() == [WorkerSeen(worker(id), True) for id in ("w1", "w2")]
        await store.unregister("w1")
        assert [seen.info.id for seen in await store.workers()] == ["w2"]
        self.advance(store, LEASE)
        assert [seen.alive for seen in await store.workers()] == [False]
        await store.register(worker("w3"))
        assert await store.workers() == [WorkerSeen(worker("w3"), True)]

    @scene
    async def test_a_restart_frees_what_the_last_process_held(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        self.kill(store, "w1")
        again = await self.restarted(store)
        assert await again.register(worker("w2")) == 1
        assert await again.claim_runs("w2", ["order"], 5) == [Claim(key(1), "order", HASH, 2, 1)]
