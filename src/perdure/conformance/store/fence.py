"""The fence: a journal has one writer at a time, whoever thinks he is it (rules 1 and 6)."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, refused, scene
from perdure.conformance.rows import BORN, commit, key, new, row, start
from perdure.model.errors import NotFound, StoreError
from perdure.model.status import RunStatus
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish, Release, RunChange, Stall

DONE = Finish("completed", NEVER - 1)


class Fence(StoreBed):
    """Cases about appending to journals, and about what rides on a row."""

    @scene
    async def test_rows_are_read_back_in_order_of_their_numbers(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        for seq in range(2, 40):
            assert await commit(store, row(1, seq, body=b"%d" % seq, read=seq)) == ["accepted"]
        journal = (await store.load(key(1))).journal
        assert [r.seq for r in journal] == list(range(1, 40))
        assert [(r.body, r.read) for r in journal[1:]] == [(b"%d" % s, s) for s in range(2, 40)]

    @scene
    async def test_a_batch_of_many_runs_is_answered_in_its_order(self, store: Store) -> None:
        await start(store, *[new(n, owner="w1") for n in range(200)])
        rows = [row(n, 2, body=b"%d" % n) for n in (*range(199, -1, -2), *range(0, 200, 2))]
        assert await commit(store, *rows) == ["accepted"] * 200
        assert (await store.load(key(77))).journal[-1].body == b"77"

    @scene
    async def test_a_stale_writer_is_refused_and_leaves_no_trace(self, store: Store) -> None:
        # scenarios 84, 93
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, writer="w2", body=b"theirs"))
        stale = row(1, 2, writer="w1", body=b"stale", payloads=[b"stale"])
        assert await commit(store, stale) == ["refused"]
        assert (await store.load(key(1))).journal[-1].body == b"theirs"
        with refused(StoreError, "lacks the payload"):
            await store.payloads(key(1), [(2, 0)])

    @scene
    async def test_the_same_bytes_again_are_mine(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        sent = row(1, 2, commit=7, payloads=[b"big"])
        assert await commit(store, sent) == ["accepted"]
        assert await commit(store, sent) == ["mine"]
        assert len((await store.load(key(1))).journal) == 2

    @scene
    async def test_the_first_row_sent_again_as_a_commit_is_mine(self, store: Store) -> None:
        await start(store, new(1, owner="w1", first=row(1, 1, commit=5)))
        assert await commit(store, row(1, 1, commit=5)) == ["mine"]

    @scene
    async def test_newer_bytes_at_a_taken_number_are_refused(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, commit=7, body=b"first"))
        assert await commit(store, row(1, 2, commit=8, body=b"newer")) == ["refused"]
        assert (await store.load(key(1))).journal[-1].body == b"first"

    @scene
    async def test_a_number_that_was_left_out_is_free(self, store: Store) -> None:
        # Nobody leaves one out; a store that is asked all the same knows only who was first.
        await start(store, new(1, owner="w1"))
        assert await commit(store, row(1, 3, body=b"third")) == ["accepted"]
        assert await commit(store, row(1, 2, body=b"second")) == ["accepted"]
        assert await commit(store, row(1, 2, writer="w2", body=b"late")) == ["refused"]
        journal = (await store.load(key(1))).journal
        assert [r.body for r in journal[1:]] == [b"second", b"third"]

    @scene
    async def test_one_refused_row_does_not_hinder_the_others(self, store: Store) -> None:
        await start(store, *[new(n, owner="w1") for n in range(5)])
        await commit(store, row(2, 2, writer="w2"), row(3, 2, commit=9))
        batch = [row(n, 2, commit=9, payloads=[b"%d" % n]) for n in range(5)]
        assert await commit(store, *batch) == [
            "accepted", "accepted", "refused", "mine", "accepted",
        ]  # fmt: skip
        assert await store.payloads(key(4), [(2, 0)]) == [b"4"]

    @scene
    async def test_a_row_of_a_run_that_is_not_there_is_refused(self, store: Store) -> None:
        await start(store, new(1, owner="w1"))
        lost = row(9, 2, payloads=[b"x"])
        assert await commit(store, lost) == ["refused"]
        assert await commit(store, row(1, 2), row(9, 2), row(8, 1)) == [
            "accepted", "refused", "refused",
        ]  # fmt: skip
        with refused(NotFound):
            await store.load(key(9))

    @scene
    async def test_an_owner_finishes_his_run(self, store: Store) -> None:
        statuses: tuple[RunStatus, ...] = ("completed", "failed", "canceled")
        for n, status in enumerate(statuses):
            await start(store, new(n, owner="w1"))
            ends = Finish(status, NEVER - 1, output=b"1", failure=b'{"kind":"K","message":"m"}')
            assert await commit(store, row(n, 2, at=BORN + 7, change=ends)) == ["accepted"]
            run = (await store.load(key(n))).run
            assert (run.status, run.owner, run.finished, run.ready_at) == (
                status, None, BORN + 7, NEVER,
            )  # fmt: skip
            assert (run.output, run.failure) == (b"1", b'{"kind":"K","message":"m"}')
            assert run.output_at is None

    @scene
    async def test_a_change_by_one_who_is_not_the_owner_is_refused_with_its_row(
        self, store: Store
    ) -> None:
        # scenario 85
        changes: tuple[RunChange, ...] = (DONE, Release(5), Stall("why"))
        for n, change in enumerate(changes):
            await start(store, new(n, owner="w1"))
            other = row(n, 2, writer="w2", change=change, payloads=[b"x"])
            assert await commit(store, other) == ["refused"]
            late = row(n, 2, epoch=1, change=change)
            assert await commit(store, late) == ["refused"]
            loaded = await store.load(key(n))
            run = loaded.run
            assert (run.status, run.owner, len(loaded.journal)) == ("running", "w1", 1)
            assert await commit(store, row(n, 2, change=change)) == ["accepted"]

    @scene
    async def test_a_finish_sent_again_is_mine_though_the_run_has_no_owner_now(
        self, store: Store
    ) -> None:
        await start(store, new(1, owner="w1"))
        ends = row(1, 2, change=DONE)
        assert await commit(store, ends) == ["accepted"]
        assert await commit(store, ends) == ["mine"]

    @scene
    async def test_a_finished_run_takes_no_further_row(self, store: Store) -> None:
        # scenario 85
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        await commit(store, row(1, 2, change=Finish("failed", NEVER - 1, failure=b"{}")))
        assert await commit(store, row(1, 3), row(2, 2)) == ["refused", "accepted"]
        assert await commit(store, row(1, 3, change=DONE)) == ["refused"]
        loaded = await store.load(key(1))
        assert (loaded.run.status, len(loaded.journal)) == ("failed", 2)

    @scene
    async def test_a_stale_row_is_refused_also_when_the_run_ended_meanwhile(
        self, store: Store
    ) -> None:
        # scenario 85: nothing collides any more, and yet the seq is somebody else's
        await start(store, new(1, owner="w1"), new(2, owner="w1"))
        theirs = row(1, 2, writer="w2")
        await commit(store, theirs)
        await commit(store, row(1, 3, change=DONE))
        stale = row(1, 2, commit=9, body=b"stale")
        assert await commit(store, stale, row(2, 2)) == ["refused", "accepted"]
        assert await commit(store, theirs) == ["mine"]
        assert (await store.load(key(1))).journal[1].body == theirs.body

    @scene
    async def test_changes_of_several_runs_in_one_batch_are_judged_one_by_one(
        self, store: Store
    ) -> None:
        await start(store, *[new(n, owner="w1") for n in range(4)], new(4, owner="w2"))
        batch = [
            row(0, 2, change=DONE),
            row(1, 2, change=Release(77)),
            row(2, 2, change=Stall("stuck")),
            row(3, 2),
            row(4, 2, change=DONE),
        ]
        assert await commit(store, *batch) == [*["accepted"] * 4, "refused"]
        runs = [(await store.load(key(n))).run for n in range(5)]
        assert [run.status for run in runs] == ["completed", *["running"] * 4]
        assert [run.owner for run in runs] == [None, None, None, "w1", "w2"]
        assert [run.ready_at for run in runs] == [NEVER, 77, NEVER, NEVER, NEVER]
        assert [run.stalled for run in runs] == [None, None, "stuck", None, None]

    @scene
    async def test_an_empty_batch_is_answered(self, store: Store) -> None:
        assert await commit(store) == []

    @scene
    async def test_every_batch_is_answered_exactly_once_on_the_loop(self, store: Store) -> None:
        await start(store, *[new(n, owner="w1") for n in range(8)])
        answers: list[object] = []
        for seq in range(2, 30):
            store.commit([row(n, seq) for n in range(8)], answers.append)
        while len(answers) < 28:
            await commit(store)
        await commit(store)
        assert answers == [["accepted"] * 8] * 28
