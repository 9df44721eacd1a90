"""Retrying what has ended: a short owner, a row that reopens, or nothing at all (rule 11)."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, refused, scene
from perdure.conformance.rows import HASH, commit, key, message, new, row, start, worker
from perdure.model.errors import NotFound, RunActive, StoreError
from perdure.stores.answers import Claim
from perdure.stores.port import PURGE_AFTER, Store
from perdure.stores.rows import NEVER, Finish, Release, Reopen, Stall

DONE = Finish("failed", 5, output=b"1", failure=b'{"kind":"K"}')
AGAIN = Reopen("2", "h2", 7, deadline=99)


async def ended(store: Store, n: int = 1) -> None:
    """A run that w1 finished."""
    await start(store, new(n, owner="w1", deadline=3))
    await commit(store, row(n, 2, payloads=[b"big"], change=DONE))


class Retrying(StoreBed):
    """Cases about finished runs that go on."""

    @scene
    async def test_a_finished_run_is_claimed_and_goes_on_with_a_row(self, store: Store) -> None:
        await ended(store)
        claim = await store.claim_finished("w2", "order", "run-1")
        assert claim == Claim(key(1), "order", HASH, 1)
        run = (await store.load(key(1))).run
        assert (run.status, run.owner, run.ready_at) == ("failed", "w2", NEVER)
        again = row(1, 3, writer="w2", epoch=1, change=AGAIN, payloads=[b"new"])
        assert await commit(store, again) == ["accepted"]
        assert await commit(store, again) == ["mine"]
        loaded = await store.load(key(1))
        run = loaded.run
        assert (run.status, run.owner, run.epoch, run.ready_at) == ("running", None, 1, 7)
        assert (run.version, run.hash, run.deadline) == ("2", "h2", 99)
        assert (run.finished, run.output, run.output_at, run.failure) == (None,) * 4
        assert [r.seq for r in loaded.journal] == [1, 2, 3]
        assert await store.payloads(key(1), [(3, 0), (2, 0)]) == [b"new", b"big"]
        assert await store.claim_runs("w3", ["order"], 5) == [Claim(key(1), "order", "h2", 2)]

    @scene
    async def test_what_cannot_be_retried_says_why(self, store: Store) -> None:
        await ended(store)
        await start(store, new(2, owner="w1"), new(3))
        with refused(NotFound, "run-9"):
            await store.claim_finished("w2", "order", "run-9")
        for id in ("run-2", "run-3"):
            with refused(RunActive, id):
                await store.claim_finished("w2", "order", id)
        await store.claim_finished("w2", "order", "run-1")
        with refused(StoreError, "somebody else"):
            await store.claim_finished("w3", "order", "run-1")

    @scene
    async def test_a_retry_given_up_leaves_the_run_ended_as_it_was(self, store: Store) -> None:
        await ended(store)
        before = (await store.load(key(1))).run
        for stalled in (None, "why"):
            claim = await store.claim_finished("w2", "order", "run-1")
            await store.give_back("w2", claim, stalled)
        run = (await store.load(key(1))).run
        assert run.epoch == 2
        assert (run.status, run.owner, run.ready_at, run.stalled, run.output, run.finished) == (
            "failed", None, NEVER, None, b"1", before.finished,
        )  # fmt: skip

    @scene
    async def test_only_the_short_owner_reopens_and_only_what_has_ended(self, store: Store) -> None:
        # scenario 85
        await ended(store)
        await start(store, new(2, owner="w1"))
        assert await commit(store, row(1, 3, change=AGAIN), row(2, 2, change=AGAIN)) == [
            "refused", "refused",
        ]  # fmt: skip
        claim = await store.claim_finished("w2", "order", "run-1")
        for writer, epoch in (("w1", 1), ("w2", 0), ("w2", 2)):
            late = row(1, 3, writer=writer, epoch=epoch, change=AGAIN)
            assert await commit(store, late) == ["refused"]
        # Also the short owner writes nothing but a retry.
        for change in (None, Release(5), Stall("why")):
            other = row(1, 3, writer="w2", epoch=claim.epoch, change=change)
            assert await commit(store, other) == ["refused"]
        taken = row(1, 2, writer="w2", epoch=claim.epoch, change=AGAIN)
        assert await commit(store, taken) == ["refused"]
        assert len((await store.load(key(1))).journal) == 2
        assert (await store.load(key(1))).run.status == "failed"

    @scene
    async def test_a_retry_that_leads_straight_to_an_end_ends_the_run_anew(
        self, store: Store
    ) -> None:
        await ended(store)
        claim = await store.claim_finished("w2", "order", "run-1")
        ends = Finish("completed", 6, output_ref=0)
        stale = row(1, 3, writer="w1", epoch=claim.epoch, change=ends)
        again = row(1, 3, at=44, writer="w2", epoch=claim.epoch, payloads=[b"new"], change=ends)
        assert await commit(store, stale) == ["refused"]
        assert await commit(store, again) == ["accepted"]
        assert await commit(store, again) == ["mine"]
        run = (await store.load(key(1))).run
        assert (run.status, run.owner, run.ready_at, run.finished) == ("completed", None, NEVER, 44)
        assert (run.output, run.output_at, run.failure) == (None, (3, 0), None)

    @scene
    async def test_such_a_retry_is_on_the_version_that_ended_it_and_else_on_the_one_before(
        self, store: Store
    ) -> None:
        await ended(store)
        said = []
        for seq, version in ((3, ("2", "h2")), (4, (None, None))):
            claim = await store.claim_finished("w2", "order", "run-1")
            ends = Finish("failed", 6, version=version[0], hash=version[1])
            again = row(1, seq, writer="w2", epoch=claim.epoch, change=ends)
            assert await commit(store, again) == ["accepted"]
            run = (await store.load(key(1))).run
            said.append((run.status, run.version, run.hash))
        assert said == [("failed", "2", "h2")] * 2

    @scene
    async def test_a_reopening_in_a_batch_does_not_hinder_the_others(self, store: Store) -> None:
        await ended(store)
        await start(store, *[new(n, owner="w2") for n in (2, 3)])
        await store.claim_finished("w2", "order", "run-1")
        batch = [
            row(2, 2, writer="w2"),
            row(1, 3, writer="w2", epoch=1, change=AGAIN),
            row(3, 2, writer="w2", change=DONE),
        ]
        assert await commit(store, *batch) == ["accepted"] * 3
        assert [(await store.load(key(n))).run.status for n in (1, 2, 3)] == [
            "running", "running", "failed",
        ]  # fmt: skip

    @scene
    async def test_a_retrier_that_dies_leaves_the_run_ended_for_the_next(
        self, store: Store
    ) -> None:
        # scenario 103
        await store.register(worker("w2"))
        await ended(store)
        await store.claim_finished("w2", "order", "run-1")
        assert (await store.beat("w2")).held == {key(1)}
        self.kill(store, "w2")
        assert await store.register(worker("w3")) == 1
        loaded = await store.load(key(1))
        assert (loaded.run.status, loaded.run.owner, loaded.run.ready_at) == ("failed", None, NEVER)
        assert len(loaded.journal) == 2
        late = row(1, 3, writer="w2", epoch=1, change=AGAIN)
        assert await commit(store, late) == ["refused"]
        claim = await store.claim_finished("w3", "order", "run-1")
        again = row(1, 3, writer="w3", epoch=claim.epoch, change=AGAIN)
        assert await commit(store, late, again) == ["refused", "accepted"]

    @scene
    async def test_a_retrier_that_leaves_leaves_the_run_ended(self, store: Store) -> None:
        await store.register(worker("w2"))
        await ended(store)
        await store.claim_finished("w2", "order", "run-1")
        await store.unregister("w2")
        run = (await store.load(key(1))).run
        assert (run.status, run.owner, run.ready_at) == ("failed", None, NEVER)

    @scene
    async def test_a_reopened_run_takes_mail_rows_and_another_end(self, store: Store) -> None:
        await ended(store)
        claim = await store.claim_finished("w2", "order", "run-1")
        await commit(store, row(1, 3, writer="w2", epoch=claim.epoch, change=AGAIN))
        [posted] = await store.post([message(1, "a")])
        assert posted.outcome == "posted"
        [claim] = await store.claim_runs("w2", ["order"], 1)
        ends = Finish("completed", NEVER - 1)
        end = row(1, 4, at=44, writer="w2", epoch=claim.epoch, read=1, change=ends)
        assert await commit(store, end) == ["accepted"]
        run = (await store.load(key(1))).run
        assert (run.status, run.finished, run.output, run.failure) == ("completed", 44, None, None)

    @scene
    async def test_a_run_being_retried_and_one_reopened_are_not_purged(self, store: Store) -> None:
        await ended(store, 1)
        await ended(store, 2)
        self.advance(store, PURGE_AFTER)
        for n in (1, 2):
            claim = await store.claim_finished("w2", "order", f"run-{n}")
        await commit(store, row(2, 3, writer="w2", epoch=claim.epoch, change=AGAIN))
        assert await store.purge(9) == 0
