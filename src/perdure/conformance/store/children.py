"""Runs that ask for other runs: made or joined once, told in the same transaction (rules 5, 6)."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.capabilities import needs
from perdure.conformance.rows import BORN, HASH, commit, definition, key, new, row, start, worker
from perdure.model.errors import NotFound
from perdure.stores.port import PURGE_AFTER, Store
from perdure.stores.rows import ChildCancel, ChildStart, Finish, JournalRow, Message, Park

LARGE = b'"' + b"x" * 5000 + b'"'


def asked(task: str, n: int, *, waits: bool = True, **more: Any) -> ChildStart:
    """A call that asks for run n."""
    run = new(n, ready_at=BORN, **more)
    return ChildStart(
        task, f"node-{task}", (run.definition, run.id), run, definition(), None, waits
    )


def asking(n: int, seq: int, *outgoing: Any, **more: Any) -> JournalRow:
    """A row of run n that asks something of others."""
    return row(n, seq, outgoing=outgoing, **more)


async def told(store: Store, n: int) -> list[tuple[str, dict[str, Any]]]:
    """What run n was told of other runs, in order."""
    return [
        (mail.kind, msgspec.json.decode(mail.body or b"null"))
        for mail in await store.mail(key(n), 0)
        if mail.kind.startswith("child")
    ]


def found(task: str, made: int = 0) -> tuple[str, dict[str, Any]]:
    """Told of a run that is there; `made`: of run n, which was made for the call."""
    said = {"task": task, "node": f"node-{task}", "created": made > 0, "typed": False}
    return "child-started", {**said, "key": key(made).hex() if made else ""}


def ended(
    task: str, status: str = "completed", output: Any = None, failure: Any = None
) -> tuple[str, dict[str, Any]]:
    """Told of a run that has ended."""
    said = {"task": task, "node": f"node-{task}", "status": status}
    return "child-finished", {**said, "output": output, "failure": failure}


class Children(StoreBed):
    """Cases about what rows ask of other runs, and what is told of their ends."""

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


async def _there(store: Store, n: int) -> bool:
    try:
        await store.load(key(n))
    except NotFound:
        return False
    return True


async def _release(store: Store, at: int) -> None:
    assert list(await store.park("w1", [Park(key(1), 0, 1, at)])) == [True]


async def _claimed(store: Store) -> list[Any]:
    """The one run that is there, made due and claimed."""
    await store.register(worker("w1"))
    await store.post([Message("order", "run-1", "wake", "unpause")])
    return list(await store.claim_runs("w1", ["order"], 9))
