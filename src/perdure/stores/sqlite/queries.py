"""The SQL of this store: one named query per file in `queries/`, read once.

A file may include another by `{name}`. A query with one row of parameters, `(?, ?)`, can be had
for n rows: one statement then does the work of n, which matters because a thread gives up its
turn at every statement and may wait milliseconds for the next one. Where a batch touches several
tables, triggers of a view that holds nothing make one statement of it: it is its own transaction.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from perdure.stores.sqlite.driver import Connection

_PARAMETERS: Final = re.compile(r"\((?:\?, )*\?\)")
_INCLUDED: Final = re.compile(r"\{(\w+)\}")
_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)

#: Rows that one statement takes at most.
MOST_ROWS: Final = 512
#: The views by which one statement writes to several tables, and their triggers.
_VIEWS: Final = ("births", "on_birth", "arrivals", "on_row", "on_last_row")


@cache
def query(name: str) -> str:
    """The text of a query."""
    text = (files(__package__) / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    return _INCLUDED.sub(lambda m: query(m[1]), _COMMENT.sub("", text).rstrip())


@cache
def query_for(name: str, rows: int) -> str:
    """The query with its row of parameters repeated."""
    return _PARAMETERS.sub(lambda m: ", ".join([m[0]] * rows), query(name))


def filled(rows: int) -> int:
    """Of how many rows the statement is that takes so many: the rest of it is filled up with rows
    of nulls. Few numbers, since each makes a statement that has to be prepared and kept."""
    if rows <= 16:
        return rows
    step = 8 if rows <= 64 else 64
    return -(-rows // step) * step


def insert_many(db: Connection, name: str, width: int, values: list[Any]) -> int:
    """Execute a query for any number of rows of `width` values, by one statement up to MOST_ROWS;
    how many rows it changed. It is to take no notice of rows of nulls."""
    changed, most = 0, MOST_ROWS * width
    for begin in range(0, len(values), most):
        part = values[begin : begin + most] if len(values) > most else values
        rows = len(part) // width
        if (more := filled(rows) - rows) > 0:
            part = part + [None] * (more * width)
        changed += db.execute(query_for(name, rows + more), part).rowcount
    return changed


def make_views(db: Connection) -> None:
    """Give a connection that writes the views that others have no use for."""
    db.execute("PRAGMA temp_store = MEMORY")
    for name in _VIEWS:
        db.execute(query(name))


@cache
def migration(number: int) -> str:
    """The script that takes the schema from the version before to this one."""
    return (files(__package__) / "schema" / f"{number:04}.sql").read_text(encoding="utf-8")


def statements(script: str) -> list[str]:
    """The statements of a script, to be executed one by one inside a transaction."""
    return [s.strip() for s in _COMMENT.sub("", script).split(";\n") if s.strip()]
