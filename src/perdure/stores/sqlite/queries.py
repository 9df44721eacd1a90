"""The SQL of this store: one named query per file in `queries/`, read once.

A file may include another by `{name}`. A query with one row of parameters, `(?, ?)`, can be had
for n rows: one statement then does the work of n, which matters because a thread gives up its
turn at every statement and may wait milliseconds for the next one.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Final

_PARAMETERS: Final = re.compile(r"\((?:\?, )*\?\)")
_INCLUDED: Final = re.compile(r"\{(\w+)\}")
_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)

#: Rows that one statement takes, whatever their number: each is a statement of its own to prepare.
MOST_ROWS: Final = 64
#: More go by multiples of that, up to so many.
MOST_MULTIPLES: Final = 4


@cache
def query(name: str) -> str:
    """The text of a query."""
    text = (files(__package__) / "queries" / f"{name}.sql").read_text(encoding="utf-8")
    return _INCLUDED.sub(lambda m: query(m[1]), _COMMENT.sub("", text).rstrip())


@cache
def query_for(name: str, rows: int) -> str:
    """The query with its row of parameters repeated."""
    return _PARAMETERS.sub(lambda m: ", ".join([m[0]] * rows), query(name))


def rows_at_once(rows: int) -> int:
    """How many of so many rows the next statement takes."""
    if rows <= MOST_ROWS:
        return rows
    return min(rows // MOST_ROWS, MOST_MULTIPLES) * MOST_ROWS


@cache
def migration(number: int) -> str:
    """The script that takes the schema from the version before to this one."""
    return (files(__package__) / "schema" / f"{number:04}.sql").read_text(encoding="utf-8")


def statements(script: str) -> list[str]:
    """The statements of a script, to be executed one by one inside a transaction."""
    return [s.strip() for s in _COMMENT.sub("", script).split(";\n") if s.strip()]
