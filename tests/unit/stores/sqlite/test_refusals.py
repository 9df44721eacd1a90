"""A row is refused for what is there already. One that can never be written is no refusal: its run
would be dropped as another worker's, and nobody would be told why it does not go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from perdure.conformance.rows import new, row
from perdure.stores.rows import Finish, JournalRow, NewRun, Stall
from perdure.stores.sqlite.driver import Connection, IntegrityError, is_lasting, sqlite3
from perdure.stores.sqlite.journal import commit_rows
from perdure.stores.sqlite.migrate import VERSION
from perdure.stores.sqlite.queries import make_views, migration, statements
from perdure.stores.sqlite.starts import start_runs


@pytest.fixture
def db() -> Iterator[Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for number in range(1, VERSION + 1):
        for statement in statements(migration(number)):
            connection.execute(statement)
    make_views(connection)
    start_runs(connection, [new(n, owner="w1") for n in range(1, 5)], nothing)
    yield connection
    connection.close()


def nothing(rows: Sequence[JournalRow]) -> None: ...


def spoilt(whole: JournalRow, **fields: Any) -> JournalRow:
    """A row with what no column takes."""
    return msgspec.structs.replace(whole, **fields)


IMPOSSIBLE = {
    "no body": spoilt(row(1, 2), body=None),
    "a text for a time": spoilt(row(1, 2), at="now"),
    "an end": spoilt(row(1, 2, change=Finish("completed", 9)), body=None),
    "a stall": spoilt(row(1, 2, change=Stall("why")), body=None),
    "a large value": spoilt(row(1, 2), payloads=(None,)),
}


@pytest.mark.parametrize("impossible", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_a_row_that_can_never_be_written_is_an_error_and_no_refusal(
    db: Connection, impossible: JournalRow
) -> None:
    for batch in ([impossible], [row(2, 2), impossible]):
        with pytest.raises(IntegrityError) as raised:
            commit_rows(db, batch, nothing)
        assert is_lasting(raised.value)
        assert not db.in_transaction
        assert db.execute("SELECT count(*) FROM journal WHERE seq = 2").fetchone() == (0,)
    assert commit_rows(db, [row(1, 2), row(2, 2)], nothing) == ["accepted"] * 2


@pytest.mark.parametrize("impossible", IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_nor_is_it_one_beside_a_row_that_is_refused(db: Connection, impossible: JournalRow) -> None:
    commit_rows(db, [row(2, 2, writer="another")], nothing)
    with pytest.raises(IntegrityError):
        commit_rows(db, [row(2, 2), impossible], nothing)
    assert commit_rows(db, [row(2, 2)], nothing) == ["refused"]


def test_a_start_that_can_never_be_written_is_an_error(db: Connection) -> None:
    impossible: NewRun = msgspec.structs.replace(new(7), metadata=None)
    for batch in ([impossible], [new(1), impossible]):
        with pytest.raises(IntegrityError) as raised:
            start_runs(db, batch, nothing)
        assert is_lasting(raised.value)
        assert not db.in_transaction
