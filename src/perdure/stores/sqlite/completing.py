"""Names and ids that begin with some text, for whoever completes them at a keypress."""

from __future__ import annotations

from typing import Final

from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import query

#: Sorts after every id that begins with the same text.
_LAST: Final = "\U0010ffff"


def names_from(db: Connection, start: str, most: int) -> list[str]:
    """Names of definitions that begin so, at most so many."""
    found = db.execute(query("names_from"), (start, most)).fetchall()
    return [name for (name,) in found if name.startswith(start)]


def ids_from(db: Connection, definition: str, start: str, most: int) -> list[tuple[str, str]]:
    """Ids of a definition's runs that begin so, the newest first, with their status."""
    found: list[tuple[str, str]] = db.execute(
        query("ids_from"), (definition, start, start + _LAST, most)
    ).fetchall()
    return found
