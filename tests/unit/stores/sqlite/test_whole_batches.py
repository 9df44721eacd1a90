"""A batch that needs no more is one statement, which is its own transaction: starts, rows, ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from perdure.conformance.rows import key, new, row
from perdure.stores.rows import ChildStart, Finish, JournalRow, Release, Stall
from perdure.stores.sqlite.children import carry_out
from perdure.stores.sqlite.driver import Connection, sqlite3
from perdure.stores.sqlite.journal import commit_rows
from perdure.stores.sqlite.migrate import VERSION
from perdure.stores.sqlite.queries import MOST_ROWS, make_views, migration, statements
from perdure.stores.sqlite.starts import start_runs


class Counting(Connection):  # type: ignore[misc, valid-type]
    """Notes what it is asked to execute."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.asked: list[str] = []

    def execute(self, sql: str, *values: Any) -> Any:
        self.asked.append(sql)
        return super().execute(sql, *values)


@pytest.fixture
def db() -> Iterator[Counting]:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=Counting)
    for number in range(1, VERSION + 1):
        for statement in statements(migration(number)):
            connection.execute(statement)
    make_views(connection)
    start_runs(connection, [new(n, owner="w1") for n in range(1, 100)], never)
    connection.asked.clear()
    yield connection
    connection.close()


def never(rows: Sequence[JournalRow]) -> None:
    raise AssertionError("these rows carry nothing for others")


def test_many_starts_are_one_statement(db: Counting) -> None:
    answers = start_runs(db, [new(n, owner="w1") for n in range(100, 100 + MOST_ROWS)], never)
    assert [one.outcome for one in answers] == ["created"] * MOST_ROWS
    assert len(db.asked) == 1


def test_rows_and_ends_of_many_runs_are_one_statement(db: Counting) -> None:
    ends = [row(n, 2, change=Finish("completed", 9, b"7")) for n in range(1, 40)]
    parks = [row(n, 2, change=Release(n)) for n in range(40, 60)]
    plain = [row(n, 2) for n in range(60, 100)]
    assert commit_rows(db, [*ends, *plain, *parks], never) == ["accepted"] * 99
    assert len(db.asked) == 1
    assert db.execute("SELECT count(*) FROM journal WHERE seq = 2").fetchone() == (99,)
    assert db.execute("SELECT status, count(*) FROM run GROUP BY status").fetchall() == [
        ("completed", 39), ("running", 60),
    ]  # fmt: skip


def test_a_run_that_ends_and_is_not_awaited_costs_no_look_at_those_who_wait(
    db: Counting,
) -> None:
    child = ChildStart("t", "node", ("order", "run-50"), None, None)
    commit_rows(db, [row(1, 2, outgoing=[child])], lambda rows: carry_out(db, rows, 5, []))
    db.asked.clear()
    assert commit_rows(db, [row(2, 2, change=Finish("completed", 9))], never) == ["accepted"]
    assert len(db.asked) == 1
    told: list[bytes] = []
    ends = [row(n, 2, change=Finish("completed", 9)) for n in (49, 50, 51)]
    verdicts = commit_rows(db, ends, lambda rows: told.extend(one.run for one in rows))
    assert verdicts == ["accepted"] * 3
    assert told == [key(49), key(50), key(51)]


def test_what_needs_more_is_a_transaction(db: Counting) -> None:
    carried: list[int] = []

    def after(rows: Sequence[JournalRow]) -> None:
        assert db.in_transaction
        carried.append(len(rows))

    large = row(1, 2, payloads=(b"1",))
    assert commit_rows(db, [large, row(2, 2)], after) == ["accepted"] * 2
    assert commit_rows(db, [row(3, 2, change=Stall("why"))], after) == ["accepted"]
    assert carried == [2, 1]
