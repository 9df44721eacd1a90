"""Sharing: several processes' stores on the same runs see one another, and one of them wins."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.capabilities import needs
from perdure.conformance.rows import commit, key, message, new, outcomes, row, start, worker
from perdure.stores.answers import Posted
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish


class Sharing(StoreBed):
    """Cases about two stores."""

    @scene
    @needs("processes")
    async def test_what_one_store_wrote_the_other_finds(self, store: Store) -> None:
        async with self.opened() as other:
            await start(store, new(1, owner="w1"))
            await commit(store, row(1, 2, body=b"first", payloads=[b"large"]))
            loaded = await other.load(key(1))
            assert loaded == await store.load(key(1))
            assert await other.payloads(key(1), [(2, 0)]) == [b"large"]
            assert await outcomes(other, new(9, id="run-1")) == ["exists"]
            await commit(other, row(1, 3, change=Finish("completed", NEVER)))
            assert (await store.describe("order", "run-1")).status == "completed"
            assert await store.post([message(1, "a")]) == [Posted("finished", 0, key(1))]

    @scene
    @needs("processes")
    async def test_a_seq_that_another_store_took_is_refused(self, store: Store) -> None:
        # scenarios 84, 93
        async with self.opened() as other:
            await start(store, new(1, owner="w1"))
            assert await commit(other, row(1, 2, writer="w2", body=b"theirs")) == ["accepted"]
            assert await commit(store, row(1, 2, writer="w1", body=b"stale")) == ["refused"]
            assert (await store.load(key(1))).journal[-1].body == b"theirs"

    @scene
    @needs("processes")
    async def test_each_due_run_goes_to_one_of_the_stores(self, store: Store) -> None:
        async with self.opened() as other:
            await store.register(worker("w1"))
            await other.register(worker("w2"))
            await start(store, *[new(n, ready_at=n) for n in range(40)])
            taken = [
                claim.key
                for _ in range(5)
                for asked, name in ((store, "w1"), (other, "w2"))
                for claim in await asked.claim_runs(name, ["order"], 5)
            ]
            assert taken == [key(n) for n in range(40)]

    @scene
    @needs("processes")
    async def test_mail_is_numbered_once_for_all_stores(self, store: Store) -> None:
        async with self.opened() as other:
            await start(store, new(1, owner="w1"))
            posted = [
                (await asked.post([message(1, id)]))[0]
                for id, asked in (("a", store), ("b", other), ("a", other), ("c", store))
            ]
            assert [(one.outcome, one.n) for one in posted] == [
                ("posted", 1), ("posted", 2), ("duplicate", 1), ("posted", 3),
            ]  # fmt: skip
            assert [mail.id for mail in await other.mail(key(1), 0)] == ["a", "b", "c"]

    @scene
    @needs("processes")
    async def test_what_another_store_makes_due_is_found(self, store: Store) -> None:
        # scenario 49
        async with self.opened() as other:
            await store.register(worker("w1"))
            later = store.now() + 3_600_000_000
            await start(other, new(1, ready_at=later))
            assert await store.claim_runs("w1", ["order"], 9) == []
            await other.post([message(1, "a")])
            assert [c.key for c in await store.claim_runs("w1", ["order"], 9)] == [key(1)]
            await start(other, new(2, ready_at=5))
            assert [c.key for c in await store.claim_runs("w1", ["order"], 9)] == [key(2)]
