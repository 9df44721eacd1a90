"""Rows that the store can never take: what is to blame is refused, and all else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.engine.runs.unwritten import Unwritten
from perdure.flow.step import step
from perdure.kernel.actions import Refused
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow, Message
from tests.virtual.engines import engine_on, graph, task, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

POISON = '"poison"'
ITEMS = graph(
    "items", [wait_for(f"n{i}", "item") for i in range(3)],
    output=[f"{{{{tasks.n{i}.output}}}}" for i in range(3)],
)  # fmt: skip


class Picky(VirtualStore):
    """Never takes a row with the poison in it."""

    tries = 0

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        if any(POISON.encode() in row.body for row in rows):
            self.tries += 1
            done(OverflowError("too large for any column"))
            return
        super().commit(rows, done)


@step
async def give() -> str:
    return "poison"


def test_a_message_that_can_never_be_recorded_is_refused_and_those_after_it_count() -> None:
    async def main() -> None:
        store = Picky()
        async with engine_on(store, ITEMS) as engine:
            started = await engine.start(ITEMS, id="1")
            values = ("1", POISON, "2", "3")
            posts = [Message("items", "1", v, "signal", "item", v.encode()) for v in values]
            await engine._shell.post.post(posts)  # together: the first row has them all
            assert await started.result(timeout=60) == [1, 2, 3]
        assert store.tries <= 3, "it is not tried for ever"
        refused = [
            action.error
            for transition in await store.journal("items", "1")
            for action in transition.actions
            if isinstance(action, Refused)
        ]
        assert refused == ["it could never be recorded: too large for any column"]

    run(main())


def test_nothing_is_remembered_of_a_run_that_left_memory() -> None:
    async def main() -> None:
        async with engine_on(Picky(), ITEMS) as engine:
            started = await engine.start(ITEMS, id="1")
            await started.signal("item", "poison")
            await asyncio.sleep(300)
            assert not engine._shell.live, "it is parked"
            assert not engine._shell.unwritten._runs
            for value in ("poison", 1, 2, 3):
                await started.signal("item", value)
            assert await started.result(timeout=60) == [1, 2, 3]

    run(main())


def test_a_run_with_such_a_message_can_be_cancelled() -> None:
    async def main() -> None:
        async with engine_on(Picky(), ITEMS) as engine:
            started = await engine.start(ITEMS, id="1")
            await started.signal("item", "poison")
            await started.cancel("enough")
            await asyncio.sleep(10)
            assert await started.status() == "canceled"

    run(main())


def test_what_no_message_is_to_blame_for_stalls_the_run_with_the_reason() -> None:
    g = graph("g", [task("give"), wait_for("ok", "go")])

    async def main() -> None:
        store = Picky()
        async with engine_on(store, g, give) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(10)
            stalled = (await started.describe()).stalled
            assert stalled == "its journal could not be written: too large for any column"
            assert store.tries == 1

    run(main())


def test_a_row_that_cannot_even_be_made_is_treated_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    from perdure.engine.runs import rows

    real = rows.encode_row

    def picky(transitions: Any) -> Any:
        row = real(transitions)
        if POISON.encode() in row[0]:
            raise ValueError("not to be encoded")
        return row

    async def main() -> None:
        async with engine_on(VirtualStore(), ITEMS) as engine:
            monkeypatch.setattr(rows, "encode_row", picky)
            started = await engine.start(ITEMS, id="1")
            for value in ("poison", 1, 2, 3):
                await started.signal("item", value)
            assert await started.result(timeout=60) == [1, 2, 3]

    run(main())


def test_a_signal_whose_value_is_not_json_is_refused() -> None:
    """In the journal it would spoil the row for whoever reads it."""

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ITEMS) as engine:
            started = await engine.start(ITEMS, id="1")
            for body in (b"{", b"", b'"\xff"'):
                await store.post([Message("items", "1", repr(body), "signal", "item", body)])
            for value in (1, 2, 3):
                await started.signal("item", value)
            assert await started.result() == [1, 2, 3]
        assert (await store.actions("items", "1")).count("Refused") == 3

    run(main())


def test_blame_ends() -> None:
    error = ValueError("no")
    rows = Unwritten()
    assert not rows.blame(b"k", 3, 3, error), "no message"
    assert rows.blame(b"k", 0, 5, error)
    assert rows.one_by_one(b"k")
    assert rows.blame(b"k", 2, 3, error)
    assert rows.why(b"k", 3) == "it could never be recorded: no"
    assert rows.why(b"k", 2) is None
    assert not rows.blame(b"k", 2, 3, error), "not even its refusal"
    rows.forget(b"k")
    assert not rows.one_by_one(b"k")
    assert rows.why(b"k", 3) is None
