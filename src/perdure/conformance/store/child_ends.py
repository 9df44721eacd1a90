"""Runs that other runs wait for: their ends are told, and what was made for a run is canceled with
it, in the same transaction (rules 5, 6)."""

from __future__ import annotations

import asyncio

import msgspec

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.capabilities import needs
from perdure.conformance.rows import commit, key, new, row, start, worker
from perdure.conformance.store.calls import asked, asking, ended, found, told
from perdure.stores.port import PURGE_AFTER, Store
from perdure.stores.rows import ChildCancel, Finish, Park

LARGE = b'"' + b"x" * 5000 + b'"'


class ChildEnds(StoreBed):
    """Cases about what is told of ends, to whom, and about what is given up."""

    @scene
    async def test_the_end_is_told_with_the_row_that_ends_it_to_all_who_wait(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"), new(3, owner="w1"))
        await commit(store, asking(1, 2, asked("a", 3), asked("b", 3)), asking(2, 2, asked("c", 3)))
        await commit(store, row(3, 2, change=Finish("completed", 9, b'{"x":1}')))
        joined = [found("a"), found("b"), ended("a", output={"x": 1})]
        assert await told(store, 1) == [*joined, ended("b", output={"x": 1})]
        assert await told(store, 2) == [found("c"), ended("c", output={"x": 1})]

    @scene
    async def test_of_many_that_end_together_the_one_that_is_awaited_is_told_of(
        self, store: Store
    ) -> None:
        await start(store, *[new(n, owner="w1") for n in range(1, 40)])
        await commit(store, asking(1, 2, asked("t", 20)))
        rows = [row(n, 2, change=Finish("completed", 9, b"%d" % n)) for n in range(3, 40)]
        assert await commit(store, row(2, 2), *rows) == ["accepted"] * 38
        assert await told(store, 1) == [found("t"), ended("t", output=20)]
        for n in (3, 20, 39):
            loaded = await store.load(key(n))
            assert (loaded.run.status, len(loaded.journal)) == ("completed", 2)

    @scene
    async def test_one_that_has_ended_answers_at_once(self, store: Store) -> None:
        failure = b'{"kind":"Boom","message":"no"}'
        await start(store, *[new(n, owner="w1") for n in (1, 2, 3)])
        await commit(
            store,
            row(2, 2, payloads=(b"1", LARGE), change=Finish("completed", 9, None, 1)),
            row(3, 2, change=Finish("failed", 9, failure=failure)),
        )
        await commit(store, asking(1, 2, asked("a", 2), asked("b", 3)))
        assert await told(store, 1) == [
            found("a"), ended("a", output="x" * 5000), found("b"),
            ended("b", "failed", failure=msgspec.json.decode(failure)),
        ]  # fmt: skip

    @scene
    async def test_one_that_ends_as_it_is_made_answers_at_once(self, store: Store) -> None:
        first = row(2, 1, writer="client", change=Finish("completed", 9, b"7"))
        await start(store, new(1, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 2, first=first, status="completed")))
        assert await told(store, 1) == [found("t", 2), ended("t", output=7)]
        assert (await store.load(key(2))).run.status == "completed"

    @scene
    async def test_only_a_child_that_was_made_for_the_call_is_cancelled_with_it(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, asking(1, 2, asked("made", 3), asked("joined", 2)))
        await commit(store, asking(1, 3, *[ChildCancel(t, "why") for t in ("made", "joined", "x")]))
        [mail] = await store.mail(key(3), 0)
        assert (mail.kind, mail.body) == ("cancel", b'"why"')
        assert list(await store.mail(key(2), 0)) == []
        before = await told(store, 1)
        await commit(store, row(2, 2, change=Finish("completed", 9)))
        assert await told(store, 1) == before  # nobody waits any more
        await commit(store, asking(1, 4, ChildCancel("made", "again")))
        assert len(await store.mail(key(3), 0)) == 1

    @scene
    async def test_a_child_that_is_made_and_given_up_in_one_row_is_cancelled(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"))
        finish = Finish("canceled", 9)
        await commit(
            store, asking(1, 2, asked("t", 2), ChildCancel("t", "why"), change=finish)
        )  # fmt: skip
        assert [mail.kind for mail in await store.mail(key(2), 0)] == ["cancel"]

    @scene
    async def test_a_waiting_run_without_an_owner_is_due_when_its_child_has_ended(
        self, store: Store
    ) -> None:
        await store.register(worker("w1"))
        later = store.now() + 3_600_000_000
        await start(store, new(1, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 2)))
        await commit(store, row(1, 3, read=1))
        [child] = await store.claim_runs("w1", ["order"], 9)
        await _release(store, later)
        assert list(await store.claim_runs("w1", ["order"], 9)) == []
        done = row(2, 2, epoch=child.epoch, change=Finish("completed", later, b"1"))
        assert await commit(store, done) == ["accepted"]
        [claim] = await store.claim_runs("w1", ["order"], 9)
        assert claim.key == key(1)
        assert [m.kind for m in (await store.load(key(1))).mail] == ["child-finished"]

    @scene
    async def test_who_has_ended_is_told_nothing_more(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 2)))
        await commit(store, row(1, 3, read=1, change=Finish("completed", 9)))
        await commit(store, row(2, 2, change=Finish("completed", 9)))
        assert await told(store, 1) == [found("t")]

    @scene
    async def test_a_run_that_is_forgotten_waits_for_nobody(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 2)))
        at = store.now() - PURGE_AFTER - 1
        await commit(store, row(1, 3, at=at, read=1, change=Finish("completed", at)))
        assert await store.purge(9) == 1
        assert await commit(store, row(2, 2, change=Finish("completed", 9))) == ["accepted"]

    @scene
    async def test_what_was_told_outlives_the_process(self, store: Store) -> None:
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, asking(1, 2, asked("a", 2), asked("b", 3)))
        store = await self.restarted(store)
        await commit(store, row(2, 2, change=Finish("completed", 9, b"1")))
        await commit(store, asking(1, 3, ChildCancel("b", "why")))
        assert await told(store, 1) == [found("a"), found("b", 3), ended("a", output=1)]
        assert [mail.kind for mail in await store.mail(key(3), 0)] == ["cancel"]

    @scene
    @needs("notifications")
    async def test_others_in_this_process_hear_what_was_told(self, store: Store) -> None:
        heard: list[str] = []
        end = store.subscribe(
            lambda: None, lambda messages, _: heard.extend(m.kind for m in messages)
        )
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, asking(1, 2, asked("t", 2)))
        await commit(store, row(2, 2, change=Finish("completed", 9)))
        for _ in range(9):
            await asyncio.sleep(0)
        end()
        assert heard == ["child-started", "child-finished"]


async def _release(store: Store, at: int) -> None:
    assert list(await store.park("w1", [Park(key(1), 0, 1, at)])) == [True]
