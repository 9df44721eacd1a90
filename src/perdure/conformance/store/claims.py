"""Claims: due runs, each to one worker, earliest first."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import BORN, HASH, commit, key, message, new, row, start, worker
from perdure.stores.answers import Claim
from perdure.stores.port import GIVEN_BACK_FOR, Store
from perdure.stores.rows import NEVER, Finish, Park, Release, Stall


class Claims(StoreBed):
    """Cases about taking runs, giving them back, and stalls."""

    @scene
    async def test_due_runs_are_claimed_once_earliest_first(self, store: Store) -> None:
        times = {1: 50, 2: 10, 3: 30, 4: 10}
        await start(store, *[new(n, ready_at=at) for n, at in times.items()])
        claimed = await store.claim_runs("w1", ["order"], 10)
        assert claimed == [Claim(key(n), "order", HASH, 1) for n in (2, 4, 3, 1)]
        assert await store.claim_runs("w2", ["order"], 10) == []
        run = (await store.load(key(1))).run
        assert (run.owner, run.epoch, run.ready_at) == ("w1", 1, 50)

    @scene
    async def test_a_claim_takes_no_more_than_asked(self, store: Store) -> None:
        await start(store, *[new(n, ready_at=n) for n in range(300)])
        taken = []
        for limit in (0, -1, 1, 150, 1000):
            taken.append([claim.key for claim in await store.claim_runs("w1", ["order"], limit)])
        assert [len(some) for some in taken] == [0, 0, 1, 150, 149]
        assert [k for some in taken for k in some] == [key(n) for n in range(300)]

    @scene
    async def test_only_what_is_due_of_the_definitions_served_is_claimed(
        self, store: Store
    ) -> None:
        later = store.now() + 3_600_000_000
        await start(
            store,
            new(1, definition="a", ready_at=3),
            new(2, definition="b", ready_at=2),
            new(3, definition="c", ready_at=1),
            new(4, definition="a", ready_at=later),
            new(5, definition="a", ready_at=NEVER),
            new(6, definition="a", ready_at=1, owner="w9"),
        )
        assert await store.claim_runs("w1", [], 9) == []
        claimed = await store.claim_runs("w1", ["a", "b", "nope", "a"], 9)
        assert [(claim.key, claim.definition) for claim in claimed] == [
            (key(2), "b"), (key(1), "a"),
        ]  # fmt: skip

    @scene
    async def test_across_definitions_the_earliest_come_first(self, store: Store) -> None:
        await start(store, *[new(n, definition="ab"[n % 2], ready_at=n) for n in range(20)])
        claimed = await store.claim_runs("w1", ["a", "b"], 7)
        assert [claim.key for claim in claimed] == [key(n) for n in range(7)]

    @scene
    async def test_a_released_run_is_claimed_when_it_is_due_again(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        later = store.now() + 3_600_000_000
        await commit(store, row(1, 2, change=Release(BORN)), row(2, 2, change=Release(later)))
        assert await store.claim_runs("w2", ["order"], 9) == [Claim(key(1), "order", HASH, 1)]
        assert await commit(store, row(1, 3, writer="w2", epoch=1, change=Release(BORN))) == [
            "accepted"
        ]
        assert await store.claim_runs("w1", ["order"], 9) == [Claim(key(1), "order", HASH, 2)]

    @scene
    async def test_stalled_and_finished_runs_are_never_claimed(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        ends = Finish("completed", 1)
        await commit(store, row(1, 2, change=Stall("stuck")), row(2, 2, change=ends))
        assert await store.claim_runs("w2", ["order"], 9) == []
        assert (await store.describe("order", "run-1")).stalled == "stuck"

    @scene
    async def test_an_old_epoch_changes_nothing_for_the_same_worker(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, change=Release(1)))
        [claim] = await store.claim_runs("w1", ["order"], 1)
        old = row(1, 3, epoch=0, change=Release(1))
        assert await commit(store, old) == ["refused"]
        assert await commit(store, row(1, 3, epoch=claim.epoch, change=Release(1))) == ["accepted"]

    @scene
    async def test_a_claim_given_back_is_due_again_after_a_while(self, store: Store) -> None:
        await start(store, new(1, ready_at=BORN))
        [claim] = await store.claim_runs("w1", ["order"], 1)
        before = store.now()
        await store.give_back("w1", claim, None)
        run = (await store.load(key(1))).run
        assert (run.owner, run.stalled, run.epoch) == (None, None, 1)
        assert before <= run.ready_at - GIVEN_BACK_FOR <= store.now()
        assert await store.claim_runs("w2", ["order"], 1) == []

    @scene
    async def test_a_claim_given_back_with_a_reason_stalls_until_it_is_unstalled(
        self, store: Store
    ) -> None:
        await start(store, new(1, ready_at=BORN), new(2, ready_at=BORN, definition="other"))
        for claim in await store.claim_runs("w1", ["order", "other"], 2):
            await store.give_back("w1", claim, "no step named ship")
        run = (await store.load(key(1))).run
        assert (run.owner, run.stalled, run.ready_at) == (None, "no step named ship", NEVER)
        assert await store.claim_runs("w2", ["order", "other"], 2) == []
        assert await store.unstall([]) == 0
        assert await store.unstall(["order", "order", "nope"]) == 1
        assert await store.unstall(["order"]) == 0
        assert await store.claim_runs("w2", ["order", "other"], 2) == [
            Claim(key(1), "order", HASH, 2)
        ]
        assert (await store.load(key(1))).run.stalled is None
        assert (await store.load(key(2))).run.stalled == "no step named ship"

    @scene
    async def test_a_stalled_run_is_due_once_its_deadline_has_come(self, store: Store) -> None:
        await store.register(worker("w1"))
        late = store.now() + 60_000_000
        stuck = Stall("stuck", until=late)
        await start(store, new(1, owner="w1"), new(2, ready_at=BORN))
        await commit(store, row(1, 2, change=stuck))
        [claim] = await store.claim_runs("w1", ["order"], 9)
        await store.give_back("w1", claim, "no code", late)
        await store.post([message(n, "now") for n in (1, 2)])  # which is no reason to try again
        for n in (1, 2):
            run = (await store.load(key(n))).run
            assert (run.stalled is not None, run.ready_at) == (True, late)
        assert await store.claim_runs("w1", ["order"], 9) == []
        self.advance(store, 60_000_000)
        claims = await store.claim_runs("w1", ["order"], 9)
        assert [claim.key for claim in claims] == [key(1), key(2)]
        assert (await store.load(key(1))).run.stalled is None
        for claim in claims:
            await store.give_back("w1", claim, "no code still")
        self.advance(store, 60_000_000)
        assert await store.claim_runs("w1", ["order"], 9) == []

    @scene
    async def test_a_claim_that_does_not_hold_any_more_cannot_be_given_back(
        self, store: Store
    ) -> None:
        await start(store, new(1, ready_at=BORN))
        [old] = await store.claim_runs("w1", ["order"], 1)
        await commit(store, row(1, 2, epoch=1, change=Release(BORN)))
        [held] = await store.claim_runs("w1", ["order"], 1)
        for name, claim in (("w1", old), ("w2", held)):
            await store.give_back(name, claim, "mine no more")
            run = (await store.load(key(1))).run
            assert (run.owner, run.epoch, run.stalled) == ("w1", 2, None)
        await commit(store, row(1, 3, epoch=2, change=Finish("completed", NEVER - 1)))
        await store.give_back("w1", held, "too late")
        assert await store.unstall(["order"]) == 0
        assert (await store.load(key(1))).run.stalled is None

    @scene
    async def test_who_acts_between_a_claim_and_the_stall_it_ends_in_is_heard(
        self, store: Store
    ) -> None:
        await store.register(worker("w1"))
        await start(store, *[new(n, ready_at=n) for n in range(3)])
        await store.post([message(n, "before", kind="cancel") for n in range(3)])
        claims = await store.claim_runs("w1", ["order"], 9)
        assert [claim.mail for claim in claims] == [1, 1, 1]
        for n, kind in enumerate(("signal", "unpause", "cancel")):
            await store.post([message(n, "now", kind=kind)])
        before = store.now()
        for claim in claims:
            await store.give_back("w1", claim, "no code")
        signaled, *others = [(await store.load(key(n))).run for n in range(3)]
        assert (signaled.stalled, signaled.ready_at) == ("no code", NEVER)
        for run in others:
            assert (run.stalled, run.owner) == (None, None)
            assert before <= run.ready_at <= store.now()
        again = await store.claim_runs("w1", ["order"], 9)
        assert [(claim.key, claim.mail) for claim in again] == [(key(1), 2), (key(2), 2)]
        # One act is one try more.
        await store.give_back("w1", again[0], "no code")
        assert (await store.load(key(1))).run.stalled == "no code"

    @scene
    async def test_what_becomes_due_is_found_although_nothing_was_due_a_moment_before(
        self, store: Store
    ) -> None:
        await store.register(worker("w1"))
        await store.register(worker("w2"))
        await start(store, *[new(n, owner="w1") for n in range(1, 6)])
        stuck = row(5, 2, writer="w1", change=Stall("no code"))
        for change in (
            lambda: start(store, new(9, ready_at=5)),
            lambda: commit(store, row(1, 2, change=Release(5))),
            lambda: store.park("w1", [Park(key(2), 0, 0, 5)]),
            lambda: commit(store, stuck),
            lambda: store.unstall(["order"]),
            lambda: store.unregister("w1"),
        ):
            assert await store.claim_runs("w2", ["order"], 9) == []
            await change()
            found = await store.claim_runs("w2", ["order"], 9)
            assert (found == []) == (await self._is_stalled(store, 5)), "only the stall is none"
        soon = store.now() + 60_000_000
        await start(store, new(10, ready_at=soon))
        assert await store.claim_runs("w2", ["order"], 9) == []
        self.advance(store, 60_000_000)
        assert [claim.key for claim in await store.claim_runs("w2", ["order"], 9)] == [key(10)]

    @staticmethod
    async def _is_stalled(store: Store, n: int) -> bool:
        return (await store.load(key(n))).run.stalled is not None
