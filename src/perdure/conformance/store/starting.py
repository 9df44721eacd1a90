"""Starting runs: once per (definition, id), and recognised when it is tried again (rule 10)."""

from __future__ import annotations

from perdure.conformance.bed import StoreBed, scene
from perdure.conformance.rows import (
    BORN,
    HASH,
    key,
    new,
    outcomes,
    row,
    start,
)
from perdure.stores.answers import RunRow, Started
from perdure.stores.port import Store
from perdure.stores.rows import NEVER, Finish


class Starting(StoreBed):
    """Cases about new runs."""

    @scene
    async def test_a_started_run_is_there_with_its_first_row(self, store: Store) -> None:
        first = row(1, 1, writer="w1", at=BORN + 5, body=b'{"first":1}', read=0)
        run = new(1, owner="w1", deadline=BORN + 9, metadata=b'{"a":"b"}', first=first)
        assert await start(store, run) == [Started("created", key(1))]
        loaded = await store.load(key(1))
        assert loaded.run == RunRow(
            key(1), "order", "run-1", "1", HASH, "running", BORN + 1000, "w1", 0, NEVER, 1, 0,
            deadline=BORN + 9, metadata=b'{"a":"b"}',
        )  # fmt: skip
        assert [(r.seq, r.at, r.writer, r.body, r.read) for r in loaded.journal] == [
            (1, BORN + 5, "w1", b'{"first":1}', 0)
        ]

    @scene
    async def test_the_same_key_again_is_mine(self, store: Store) -> None:
        await start(store, new(1))
        assert await start(store, new(1)) == [Started("mine", key(1))]
        assert len((await store.load(key(1))).journal) == 1

    @scene
    async def test_the_same_id_under_another_key_exists_and_names_the_first(
        self, store: Store
    ) -> None:
        await start(store, new(1, id="same"))
        assert await start(store, new(2, id="same")) == [Started("exists", key(1))]
        assert await outcomes(store, new(3, id="same", definition="other")) == ["created"]

    @scene
    async def test_a_run_under_a_name_of_before_exists(self, store: Store) -> None:
        await start(store, new(1, id="same", definition="order-v1"))
        before = ("order-v0", "order-v1")
        assert await start(store, new(2, id="same", former=before)) == [Started("exists", key(1))]
        batch = [new(3, id="other", definition="order-v0"), new(4, id="other", former=before)]
        assert await start(store, *batch) == [Started("created", key(3)), Started("exists", key(3))]
        batch = [new(5, id="new", former=before), new(5, id="new", former=before)]
        assert await outcomes(store, *batch) == ["created", "mine"]
        assert await outcomes(store, new(6, id="new", former=before)) == ["exists"]
        assert (await store.describe("order", "new")).key == key(5)
        await start(store, new(7, id="both"), new(8, id="both", definition="order-v1"))
        both = await start(store, new(9, id="both", former=before))
        assert both == [Started("exists", key(7))], "its own name comes first"

    @scene
    async def test_a_batch_answers_each_run_and_the_good_ones_are_there(self, store: Store) -> None:
        await start(store, new(1, id="a"))
        batch = [new(2, id="b"), new(3, id="a"), new(1, id="a"), new(4, id="b"), new(5, id="c")]
        assert await outcomes(store, *batch) == ["created", "exists", "mine", "exists", "created"]
        assert (await store.describe("order", "b")).key == key(2)
        assert (await store.describe("order", "c")).key == key(5)

    @scene
    async def test_a_run_that_exists_keeps_its_payloads_and_rows(self, store: Store) -> None:
        await start(store, new(1, id="a", first=row(1, 1, payloads=[b"old"])))
        await start(store, new(2, id="a", first=row(2, 1, payloads=[b"new"])))
        assert await store.payloads(key(1), [(1, 0)]) == [b"old"]

    @scene
    async def test_a_run_may_end_in_its_first_row(self, store: Store) -> None:
        ends = Finish("completed", NEVER - 1, output=b"7")
        await start(store, new(1, owner="w1", first=row(1, 1, at=BORN + 3, change=ends)))
        run = (await store.load(key(1))).run
        assert (run.status, run.owner, run.output, run.finished) == (
            "completed", None, b"7", BORN + 3,
        )  # fmt: skip
        assert run.ready_at == NEVER

    @scene
    async def test_an_empty_batch_is_answered(self, store: Store) -> None:
        assert await start(store) == []
