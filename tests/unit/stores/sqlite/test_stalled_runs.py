"""Runs that stall may be many: what a worker asks whenever it looks for work must not walk them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import pytest

from perdure.conformance.rows import new, row
from perdure.stores.rows import JournalRow, Stall
from perdure.stores.sqlite.driver import Connection, sqlite3
from perdure.stores.sqlite.due import look
from perdure.stores.sqlite.journal import commit_rows
from perdure.stores.sqlite.migrate import VERSION
from perdure.stores.sqlite.queries import make_views, migration, statements
from perdure.stores.sqlite.starts import start_runs

DEADLINE = 1_000


def stalled(db: Connection, count: int, until: int) -> None:
    """A database in which so many runs are stalled until then."""
    for number in range(1, VERSION + 1):
        for statement in statements(migration(number)):
            db.execute(statement)
    make_views(db)
    start_runs(db, [new(n, owner="w1") for n in range(count)], nothing)
    stalls = [row(n, 2, change=Stall("why", until=until + n)) for n in range(count)]
    commit_rows(db, stalls, nothing)


def nothing(rows: Sequence[JournalRow]) -> None: ...


def steps_of_a_look(count: int, now: int) -> int:
    """How much a look for work makes the library do, where so many are stalled."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        stalled(db, count, DEADLINE)
        steps = 0

        def one() -> None:
            nonlocal steps
            steps += 1

        look(db, "w2", ("order",), 1, 0)
        db.set_progress_handler(one, 1)
        found = look(db, "w2", ("order",), 1, now)
        db.set_progress_handler(None, 1)
        assert len(found.claims) == (now >= DEADLINE)
        assert found.first == (now if found.claims else DEADLINE)
        return steps


@pytest.mark.parametrize("now", [DEADLINE - 1, DEADLINE])
def test_a_look_for_work_costs_the_same_however_many_runs_are_stalled(now: int) -> None:
    assert steps_of_a_look(400, now) == steps_of_a_look(4, now)
