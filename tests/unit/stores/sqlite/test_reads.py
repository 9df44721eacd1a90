"""Loading a run: every row as it was written, in order; damage is told, never half a journal."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from perdure.model.errors import NotFound, StoreError
from perdure.stores.rows import NEVER, JournalRow, NewRun
from perdure.stores.sqlite.driver import Connection, sqlite3
from perdure.stores.sqlite.journal import commit_rows
from perdure.stores.sqlite.migrate import VERSION
from perdure.stores.sqlite.queries import make_views, migration, statements
from perdure.stores.sqlite.reads import load_run
from perdure.stores.sqlite.starts import start_runs

KEY = bytes(15) + b"\x01"
AT = 1_700_000_000_000_000


def row(seq: int, body: bytes) -> JournalRow:
    return JournalRow(KEY, seq, AT + seq, "w", seq, body, 0, seq * 10)


def nothing(rows: Sequence[JournalRow]) -> None:
    """These rows carry nothing for others."""


def database(*bodies: bytes) -> Connection:
    """One run with these rows."""
    db = sqlite3.connect(":memory:", isolation_level=None)
    for number in range(1, VERSION + 1):
        for statement in statements(migration(number)):
            db.execute(statement)
    make_views(db)
    first = row(1, bodies[0])
    start_runs(db, [NewRun(KEY, "one", "1", "v", "h", AT, first, "w", NEVER)], nothing)
    for seq, body in enumerate(bodies[1:], 2):
        assert commit_rows(db, [row(seq, body)], nothing) == ["accepted"]
    return db


@pytest.mark.parametrize(
    "bodies",
    [
        [b'{"v":1,"t":[]}'],
        [b'{"v":1}', b"{}", b'{"a":"\\u001e \xc3\xa9 \xf0\x9f\x98\x80"}', b'{"v":2}'],
        [b"{}", b"not JSON", b"\xff\xfe is no text", b"\x00"],
        [b""],
        [b"", b"", b""],
    ],
)
def test_rows_come_back_byte_for_byte_and_in_order(bodies: list[bytes]) -> None:
    loaded = load_run(database(*bodies), KEY)
    assert [r.body for r in loaded.journal] == bodies
    assert [(r.seq, r.at, r.writer, r.read) for r in loaded.journal] == [
        (seq, AT + seq, "w", seq * 10) for seq in range(1, len(bodies) + 1)
    ]
    assert (loaded.run.id, loaded.run.owner, list(loaded.mail)) == ("1", "w", [])


def test_rows_below_the_base_are_left_out() -> None:
    db = database(b"old", b"base", b"new")
    db.execute("UPDATE run SET base_seq = 2")
    assert [r.body for r in load_run(db, KEY).journal] == [b"base", b"new"]


def test_a_run_without_rows_is_loaded_as_such_and_one_that_is_not_there_is_not_found() -> None:
    db = database(b"{}")
    db.execute("DELETE FROM journal")
    assert list(load_run(db, KEY).journal) == []
    with pytest.raises(NotFound, match="no run with the key"):
        load_run(db, bytes(16))


def test_a_body_that_looks_like_two_is_damage() -> None:
    with pytest.raises(StoreError, match=f"the journal of run {KEY.hex()} is damaged"):
        load_run(database(b"{}", b"{}\x1e{}"), KEY)
