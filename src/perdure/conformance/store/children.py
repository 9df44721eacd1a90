"""Runs that ask for other runs: made or joined once, in the same transaction (rules 5, 6)."""

from __future__ import annotations

from typing import Any

import msgspec

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import BORN, HASH, commit, definition, key, new, row, start, worker
from perdure.conformance.store.calls import asked, asking, ended, found, told
from perdure.model.errors import NotFound
from perdure.stores.port import Store
from perdure.stores.rows import ChildCancel, ChildStart, Finish, Message


class Children(StoreBed):
    """Cases about what rows ask of other runs."""

    @scene
    async def test_a_run_that_is_asked_for_is_made_with_the_row_and_due(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        assert await commit(store, asking(1, 2, asked("t", 2))) == ["accepted"]
        assert await told(store, 1) == [found("t", 2)]
        loaded = await store.load(key(2))
        assert (loaded.run.status, loaded.run.owner, loaded.run.ready_at) == ("running", None, BORN)
        assert [r.seq for r in loaded.journal] == [1]
        assert (await store.definition(HASH)).name == "order"
        [claim] = await store.claim_runs("w1", ["order"], 9)
        assert claim.key == key(2)

    @scene
    async def test_who_asks_may_own_it_from_its_birth(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        run = new(2, owner="w1")
        call = ChildStart("t", "node-t", (run.definition, run.id), run, definition())
        assert await commit(store, asking(1, 2, call)) == ["accepted"]
        assert await told(store, 1) == [found("t", 2)]
        assert (await store.load(key(2))).run.owner == "w1"
        assert list(await store.claim_runs("w1", ["order"], 9)) == []
        assert await commit(store, row(2, 2)) == ["accepted"]
        await store.unregister("w1")
        await store.register(worker("w2"))
        found_due = await store.claim_runs("w2", ["order"], 9)
        assert key(2) in {claim.key for claim in found_due}

    @scene
    async def test_a_child_is_due_by_the_stores_clock_whoever_made_it(self, store: Store) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        later = store.now() + 3_600_000_000
        ahead = new(2, ready_at=later)
        call = ChildStart("t", "n", ("order", "run-2"), ahead, definition())
        await commit(store, row(1, 2, outgoing=[call]))
        [claim] = await store.claim_runs("w1", ["order"], 9)
        assert claim.key == key(2)
        assert (await store.load(key(2))).run.not_before <= store.now()

    @scene
    async def test_one_that_is_there_is_joined_as_it_is_whatever_is_asked(
        self, store: Store
    ) -> None:
        # scenario 92
        await start(store, new(1, owner="w1"), new(2, owner="w2", ready_at=7))
        await commit(store, asking(1, 2, asked("t", 3, id="run-2")))
        assert await told(store, 1) == [found("t")]
        assert (await store.load(key(2))).run.owner == "w2"
        try:
            await store.load(key(3))
        except NotFound:
            return
        raise AssertionError("a second run of one id was made")

    @scene
    async def test_who_only_wants_it_started_is_told_no_more(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, asking(1, 2, asked("a", 2, waits=False), asked("b", 3, waits=False)))
        await commit(store, row(2, 2, change=Finish("completed", 9)))
        assert await told(store, 1) == [found("a"), found("b", 3)]
        await commit(store, asking(1, 3, ChildCancel("b", "enough")))
        assert await told(store, 3) == []

    @scene
    async def test_a_task_that_waits_is_not_asked_for_again_whoever_asks(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"), new(3, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 3)))
        await commit(store, asking(1, 3, asked("t", 3)), asking(2, 2, asked("t", 3, waits=False)))
        assert await told(store, 1) == [found("t")]
        assert await told(store, 2) == []

    @scene
    async def test_one_that_cannot_be_made_is_refused_unless_it_is_there(
        self, store: Store
    ) -> None:
        refusal = b'{"kind":"InvalidRequest","message":"no"}'
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        calls = [
            ChildStart(task, f"node-{task}", ("order", id), None, None, refusal)
            for task, id in (("a", "run-2"), ("b", "run-3"))
        ]
        await commit(store, asking(1, 2, *calls))
        why = {"kind": "InvalidRequest", "message": "no"}
        assert await told(store, 1) == [found("a"), ended("b", "failed", failure=why)]

    @scene
    async def test_what_a_refused_row_asks_never_was(self, store: Store) -> None:
        # scenario 95
        await start(store, new(1, owner="w1"), new(3, owner="w1"))
        await commit(store, row(1, 2, writer="w2"))
        message = Message("order", "run-3", "m", "signal", "paid")
        batch = [asking(1, 2, asked("t", 2), message), asking(3, 2, asked("u", 4))]
        assert await commit(store, *batch) == ["refused", "accepted"]
        assert [n for n in (2, 4) if await _there(store, n)] == [4]
        assert await told(store, 1) == []
        assert await told(store, 3) == [found("u", 4)]

    @scene
    async def test_the_same_row_again_asks_nothing_again(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        again = asking(1, 2, asked("t", 2), Message("order", "run-1", "m", "signal", "paid"))
        assert await commit(store, again) == ["accepted"]
        assert await commit(store, again) == ["mine"]
        assert len(await store.mail(key(1), 0)) == 2

    @scene
    async def test_a_call_that_asks_twice_is_answered_once(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 2)))
        await commit(store, asking(1, 3, asked("t", 3, id="run-2")))
        await commit(store, asking(1, 4, ChildCancel("t", "why")))
        assert await told(store, 1) == [found("t", 2)]
        assert [mail.kind for mail in await store.mail(key(2), 0)] == ["cancel"]

    @scene
    async def test_a_run_that_was_moved_asks_again_and_is_told_what_it_was_not(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 2)))
        moved, child = await store.save(key(1)), await store.save(key(2))
        self.end()
        self.begin()
        store = await self.restarted(store)
        await store.restore(moved, None)
        [claim] = await _claimed(store)
        again = asking(1, 3, asked("t", 3, id="run-2"), epoch=claim.epoch)
        assert await commit(store, again) == ["accepted"]
        assert await told(store, 1) == [found("t")]  # its child has not come yet
        await store.restore(child, None)
        await store.post([Message("order", "run-2", "m", "unpause")])
        [claim] = await store.claim_runs("w1", ["order"], 9)
        done = row(2, 2, epoch=claim.epoch, change=Finish("completed", 9, b"1"))
        assert await commit(store, done) == ["accepted"]
        assert await told(store, 1) == [found("t"), ended("t", output=1)]

    @scene
    async def test_a_run_under_a_name_of_before_is_the_one_that_is_asked_for(
        self, store: Store
    ) -> None:
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"), new(2, definition="order-v1", owner="w1"))
        before = ("order-v0", "order-v1")
        asks = [
            msgspec.structs.replace(asked(task, n), former=before)
            for task, n in (("t", 2), ("u", 3))
        ]
        refused = msgspec.structs.replace(asks[0], task="v", node="node-v", run=None, former=before)
        assert await commit(store, asking(1, 2, *asks, refused)) == ["accepted"]
        assert await told(store, 1) == [found("t"), found("u", 3), found("v")]
        done = row(2, 2, change=Finish("completed", 9, b"1"))
        assert await commit(store, done) == ["accepted"]
        ends = (await told(store, 1))[3:]
        assert sorted(ends, key=str) == [ended("t", output=1), ended("v", output=1)]


async def _there(store: Store, n: int) -> bool:
    try:
        await store.load(key(n))
    except NotFound:
        return False
    return True


async def _claimed(store: Store) -> list[Any]:
    """The one run that is there, made due and claimed."""
    await store.register(worker("w1"))
    await store.post([Message("order", "run-1", "wake", "unpause")])
    return list(await store.claim_runs("w1", ["order"], 9))
