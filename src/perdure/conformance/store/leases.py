"""Leases: who does not beat loses his runs, whatever else says that he is there (rules 8, 12)."""

from __future__ import annotations

from perdure.codec.journal import decode_row
from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import commit, key, new, number, row, start, worker
from perdure.kernel.actions import Claimed
from perdure.stores.port import CRASH_LIMIT, LEASE, LONE_CRASHES, Store
from perdure.stores.rows import NEVER, Finish, Release


class Leases(StoreBed):
    """Cases about beats, and about those that do not come."""

    @scene
    async def test_a_beat_says_what_is_held_and_until_when(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in range(3)], new(3, owner="w2"), new(4))
        await commit(store, row(0, 2, change=Release(NEVER)))
        before = store.now()
        beat = await store.beat("w1")
        assert beat.alive
        assert before <= beat.now <= store.now()
        assert beat.until == beat.now + LEASE
        assert beat.held == {key(1), key(2)}
        assert beat.mail == {}

    @scene
    async def test_a_worker_that_beats_keeps_its_runs_and_one_that_does_not_loses_them(
        self, store: Store
    ) -> None:
        # scenarios 61, 97, 99
        for id in ("w1", "w2", "w3"):
            await store.register(worker(id))
        await start(store, new(1, owner="w1"), new(2, owner="w2"), new(3, owner="w3"))
        for _ in range(3):
            self.advance(store, LEASE // 2)
            assert (await store.beat("w1")).alive
            assert store.extend("w3")
        assert [(await store.load(key(n))).run.owner for n in (1, 2, 3)] == ["w1", None, "w3"]
        loaded = await store.load(key(2))
        assert (loaded.run.epoch, loaded.run.crashes) == (1, 1)
        [transition] = decode_row(loaded.journal[-1].body)
        assert transition.actions == [Claimed("w1")]

    @scene
    async def test_one_who_was_declared_dead_learns_it_and_writes_nothing_more(
        self, store: Store
    ) -> None:
        # scenarios 84, 93
        await store.register(worker("w1"))
        await store.register(worker("w2"))
        await start(store, new(1, owner="w1"))
        self.advance(store, LEASE)
        await store.beat("w2")
        assert (await store.load(key(1))).run.owner is None
        assert await commit(store, row(1, 2)) == ["refused"]
        for _ in range(2):
            beat = await store.beat("w1")
            assert (beat.alive, beat.held) == (False, frozenset())
        assert not store.extend("w1")
        # His sweeps harm nobody.
        assert await store.sweep("w1") == 0
        assert (await store.beat("w2")).alive

    @scene
    async def test_a_late_beat_saves_one_whom_nobody_declared_dead(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        self.advance(store, 3 * LEASE)
        beat = await store.beat("w1")
        assert beat.alive
        assert beat.held == {key(1)}
        await store.register(worker("w2"))
        assert (await store.load(key(1))).run.owner == "w1"

    @scene
    async def test_one_s_own_sweep_never_declares_oneself_dead(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        self.advance(store, 3 * LEASE)
        assert await store.sweep("w1") == 0
        assert (await store.load(key(1))).run.owner == "w1"

    @scene
    async def test_a_run_that_keeps_killing_is_claimed_alone(self, store: Store) -> None:
        await store.register(worker("w0"))
        await start(store, *[new(n, owner="w0") for n in range(3)])
        for n in range(LONE_CRASHES):
            self.kill(store, f"w{n}")
            await store.register(worker(f"w{n + 1}"))
            if n < LONE_CRASHES - 1:
                claims = await store.claim_runs(f"w{n + 1}", ["order"], 9)
                assert [claim.crashes for claim in claims] == [n + 1, min(n + 1, 1), n + 1]
            if n == 0:
                await commit(store, row(1, 3, writer="w1", epoch=2))
        # Runs 0 and 2 crashed each time, run 1 got on in between.
        await start(store, new(3, ready_at=5))
        me, taken = f"w{LONE_CRASHES}", []
        while claims := await store.claim_runs(me, ["order"], 9):
            taken.append([(number(claim.key), claim.crashes) for claim in claims])
        assert taken == [
            [(3, 0)], [(0, LONE_CRASHES)], [(1, LONE_CRASHES - 1)], [(2, LONE_CRASHES)],
        ]  # fmt: skip

    @scene
    async def test_past_the_limit_a_run_stalls_with_a_reason_and_others_go_on(
        self, store: Store
    ) -> None:
        await store.register(worker("w0"))
        await start(store, new(1, owner="w0"))
        for n in range(CRASH_LIMIT + 1):
            self.kill(store, f"w{n}")
            await store.register(worker(f"w{n + 1}"))
            if n < CRASH_LIMIT:
                [claim] = await store.claim_runs(f"w{n + 1}", ["order"], 9)
                assert claim.crashes == n + 1
        await start(store, new(2, ready_at=store.now()))
        claims = await store.claim_runs("w99", ["order"], 9)
        assert [claim.key for claim in claims] == [key(2)]
        run = (await store.load(key(1))).run
        assert (run.owner, run.ready_at, run.status) == (None, NEVER, "running")
        assert run.stalled is not None
        assert f"died {CRASH_LIMIT + 1} times in a row" in run.stalled
        assert await store.unstall(["order"]) == 0

    @scene
    async def test_more_than_a_hundred_runs_of_an_expired_worker_are_all_freed(
        self, store: Store
    ) -> None:
        await store.register(worker("w1"))
        await store.register(worker("w2"))
        await start(store, *[new(n, owner="w1") for n in range(230)])
        ended = [row(n, 2, change=Finish("completed", NEVER)) for n in range(30)]
        await commit(store, *ended)
        self.advance(store, LEASE)
        assert (await store.beat("w2")).alive
        assert len(await store.claim_runs("w2", ["order"], 999)) == 200
        assert (await store.beat("w2")).held == {key(n) for n in range(30, 230)}
