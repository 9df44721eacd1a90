"""Counting the statements that SQLite connections carry out, however they are opened.

A *query* reads or writes tables. What only opens or ends a transaction, and the look at the
file's data version (a number in shared memory), are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from perdure.stores.sqlite import opening, readers, workers
from perdure.stores.sqlite.driver import Connection, connect

_FRAMES = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """What connections opened inside do: `query`, `look`, `frame`, by number."""
    counts: Counter[str] = Counter()

    def note(statement: str) -> None:
        counts[kind(statement)] += 1

    def opened(path: Path, mode: Any) -> Connection:
        db = connect(path, mode)
        db.set_trace_callback(note)
        return db

    with (
        patch.object(opening, "connect", opened),
        patch.object(readers, "connect", opened),
        patch.object(workers, "connect", opened),
    ):
        yield counts


def kind(statement: str) -> str:
    """What a statement counts as."""
    text = statement.lstrip().upper()
    if text.startswith(_FRAMES):
        return "frame"
    return "look" if text.startswith("PRAGMA DATA_VERSION") else "query"
