"""Facts about a database file, for whoever judges whether all is well. Reads only."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from perdure.stores.port import LONE_CRASHES
from perdure.stores.sqlite.driver import Connection, Error, connect, explain, patiently
from perdure.stores.sqlite.migrate import check_schema
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.transaction import Transaction

T = TypeVar("T")

#: Of what is wrong with the pages of a file, so much is told.
TOLD: Final = 5
#: How long a lock of another process is waited for, in seconds.
PATIENCE: Final = 5.0


class Overdue(msgspec.Struct, frozen=True):
    """Runs of one definition that are due since before a moment and that nobody has taken."""

    definition: str
    count: int
    since: int


class Health(msgspec.Struct, frozen=True):
    """`schema` 0: an empty file. `newest`: the latest birth of a run. `stalled`, `crashing`: how
    many, and the first ones as (workflow, id, reason or crashes). `lost`: runs held by workers
    that are gone."""

    schema: int
    journal_mode: str
    newest: int | None = None
    overdue: tuple[Overdue, ...] = ()
    stalled: int = 0
    stalled_first: tuple[tuple[str, str, str], ...] = ()
    crashing: tuple[tuple[str, str, int], ...] = ()
    lost: int = 0


def examine(path: Path, due_before: int) -> Health:
    """What is in the file. Raises StoreError where it cannot be read, or is not perdure's."""
    return _looking(path, lambda db: _examined(db, path, due_before))


def damage(path: Path) -> list[str]:
    """What is wrong with its pages; reads the whole file. Raises StoreError."""
    return _looking(path, _damage)


def _looking(path: Path, look: Callable[[Connection], T]) -> T:
    try:
        with closing(connect(path, "ro")) as db:
            return patiently(lambda: look(db), PATIENCE)
    except Error as error:
        raise explain(error, path) from error


def _damage(db: Connection) -> list[str]:
    found = db.execute(f"PRAGMA quick_check({TOLD})").fetchall()
    return [str(text) for (text,) in found if text != "ok"]


def _examined(db: Connection, path: Path, due_before: int) -> Health:
    with Transaction(db, write=False):
        (mode,) = db.execute("PRAGMA journal_mode").fetchone()
        schema = check_schema(db, path)
        if schema < 2:
            return Health(schema, mode)
        (newest,) = db.execute(query("newest_run")).fetchone()
        stalled = db.execute(query("stalled_runs"), (TOLD,)).fetchall()
        (count,) = db.execute(query("count_stalled")).fetchone()
        (lost,) = db.execute(query("count_lost")).fetchone()
        return Health(
            schema,
            mode,
            newest,
            tuple(Overdue(*row) for row in db.execute(query("overdue"), (due_before,)).fetchall()),
            count,
            tuple(stalled),
            tuple(db.execute(query("crashing_runs"), (LONE_CRASHES, TOLD)).fetchall()),
            lost,
        )
