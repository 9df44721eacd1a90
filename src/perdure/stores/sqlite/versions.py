"""Published definitions: the latest of a name, and how many runs each has."""

from __future__ import annotations

import msgspec

from perdure.stores.answers import DefinitionSeen
from perdure.stores.labels import taken
from perdure.stores.rows import StoredDefinition
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.transaction import Transaction


def publish(db: Connection, definition: StoredDefinition, *, relabel: bool) -> None:
    """Make it the latest of its name, unless its label is another's."""
    d = definition
    values = msgspec.structs.asdict(d)
    with Transaction(db):
        other = db.execute(query("same_label"), (d.name, d.version, d.hash)).fetchone()
        if other is not None and not relabel:
            raise taken(d, *other)
        db.execute(query("publish"), values)


def list_definitions(db: Connection, name: str | None) -> list[DefinitionSeen]:
    """By name, the latest first."""
    found = db.execute(query("list_definitions"), {"name": name}).fetchall()
    return [DefinitionSeen(*row) for row in found]
