"""Workers: the dead are seen, what they held goes on, and crashes are counted (rules 2, 8, 9)."""

from __future__ import annotations

import pytest

from perdure.codec.journal import decode_row
from perdure.kernel.actions import Claimed
from perdure.model.errors import StoreError
from perdure.stores.port import NEVER, Claim, Finish, Release, Stall, Store
from tests.conformance.store.kit import HASH, Case, commit, key, new, play, row, start, worker

DONE = Finish("completed", NEVER - 1)


def test_the_living_keep_their_runs(case: Case) -> None:
    async def scene(store: Store) -> None:
        assert await store.register(worker("w1")) == 0
        await start(store, new(1, owner="w1"))
        assert await store.register(worker("w2")) == 0
        assert (await store.load(key(1))).run.owner == "w1"

    play(case, scene)


def test_a_dead_worker_s_runs_are_freed_and_the_fence_moves(case: Case) -> None:
    # scenarios 83, 86
    async def scene(store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"), new(2, owner="w1"), new(3, ready_at=NEVER))
        await commit(store, row(2, 2, at=NEVER - 5, read=4))
        case.kill(store, "w1")
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

    play(case, scene)


def test_a_death_after_registering_is_found_by_the_sweep(case: Case) -> None:
    # scenarios 61, 86
    async def scene(store: Store) -> None:
        await store.register(worker("w1"))
        await store.register(worker("w2"))
        await start(store, new(1, owner="w1"), new(2, owner="w2"))
        assert await store.sweep("w2") == 0
        case.kill(store, "w1")
        assert await store.sweep("w2") == 1
        assert (await store.load(key(1))).run.owner is None
        assert (await store.load(key(2))).run.owner == "w2"
        assert await store.sweep("w2") == 0

    play(case, scene)


def test_the_dead_worker_who_was_not_dead_is_refused(case: Case) -> None:
    # scenario 93
    async def scene(store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        case.kill(store, "w1")
        await store.register(worker("w2"))
        assert await commit(store, row(1, 2), row(2, 2, change=DONE)) == ["refused"] * 2
        # Even at a free number what changes the run is refused: it is not his any more.
        assert await commit(store, row(2, 3, change=DONE)) == ["refused"]

    play(case, scene)


def test_owners_that_never_registered_count_as_dead(case: Case) -> None:
    async def scene(store: Store) -> None:
        await start(store, new(1, owner="nobody"))
        assert await store.register(worker("w1")) == 1
        assert (await store.load(key(1))).run.owner is None

    play(case, scene)


def test_finished_and_parked_runs_of_the_dead_stay_as_they_are(case: Case) -> None:
    # scenario 103
    async def scene(store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in range(3)])
        changes = [DONE, Release(NEVER - 9), Stall("stuck")]
        await commit(store, *[row(n, 2, change=change) for n, change in enumerate(changes)])
        case.kill(store, "w1")
        assert await store.register(worker("w2")) == 0
        assert [len((await store.load(key(n))).journal) for n in range(3)] == [2, 2, 2]

    play(case, scene)


def test_more_than_a_hundred_runs_are_all_freed(case: Case) -> None:
    async def scene(store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in range(250)])
        case.kill(store, "w1")
        assert await store.register(worker("w2")) == 250
        assert len(await store.claim_runs("w2", ["order"], 1000)) == 250

    play(case, scene)


def test_crashes_count_only_without_progress(case: Case) -> None:
    # scenario 74
    async def crash(store: Store, dead: str, next: str) -> int:
        case.kill(store, dead)
        await store.register(worker(next))
        return (await store.load(key(1))).run.crashes

    async def scene(store: Store) -> None:
        await store.register(worker("w0"))
        await start(store, new(1, owner="w0"))
        for n in range(3):
            assert await crash(store, f"w{n}", f"w{n + 1}") == n + 1
            assert [c.key for c in await store.claim_runs(f"w{n + 1}", ["order"], 5)] == [key(1)]
        await commit(store, row(1, 5, writer="w3"))
        assert (await store.load(key(1))).run.crashes == 0
        assert (await store.describe("order", "run-1")).crashes == 0
        assert await crash(store, "w3", "w4") == 1

    play(case, scene)


def test_a_worker_that_leaves_frees_its_runs_without_a_crash(case: Case) -> None:
    async def scene(store: Store) -> None:
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

    play(case, scene)


def test_an_id_is_registered_once(case: Case) -> None:
    async def scene(store: Store) -> None:
        await store.register(worker("w1"))
        with pytest.raises(StoreError, match="registered already"):
            await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        assert await store.register(worker("w2")) == 0

    play(case, scene)


def test_a_restart_frees_what_the_last_process_held(case: Case) -> None:
    async def before(store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        case.kill(store, "w1")

    async def after(store: Store) -> None:
        assert await store.register(worker("w2")) == 1
        assert await store.claim_runs("w2", ["order"], 5) == [Claim(key(1), "order", HASH, 2, 1)]

    play(case, before)
    play(case, after)
