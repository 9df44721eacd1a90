"""The schema: made, brought up to date, or refused.

A file is looked at before anything is written to it: one that is no database, somebody else's,
damaged or of a newer perdure is left exactly as it was.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from perdure.model.errors import StoreError
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import migration, query, statements
from perdure.stores.sqlite.transaction import Transaction

#: Marks a database as perdure's: "Perd" in ASCII.
APPLICATION_ID: Final = 0x50657264
#: The schema this code works with: the number of the last file in `schema/`.
VERSION: Final = 4


def check_place(path: Path) -> None:
    """Raise StoreError for a path where no database can be.

    The file itself is never opened but through SQLite: closing it would drop the locks that other
    connections of this process hold on it.
    """
    if not path.parent.is_dir():
        raise StoreError(f"folder {path.parent} does not exist: create it, or give another path")
    if path.is_dir():
        raise StoreError(f"{path} is a folder: give the path of a file")


def check_rights(path: Path) -> None:
    """Raise StoreError for a database that can only be read, which SQLite finds out too late."""
    if not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise StoreError(f"database {path} cannot be written: check the permissions of the file")


def check_schema(db: Connection, path: Path) -> int:
    """The version of the schema, 0 if the database is empty. Within a transaction: several may
    be making it at this moment.

    Raises StoreError, having written nothing, for one of another program or a newer perdure.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application == APPLICATION_ID:
        found = _version(db, path)
        if found > VERSION:
            raise StoreError(
                f"database {path} has schema {found}, this perdure knows {VERSION} at most: "
                "upgrade perdure, or give another file; it was left as it is"
            )
        return found
    if application or tables:
        raise StoreError(
            f"database {path} belongs to another program: give perdure a file of its own"
        )
    return 0


def check_current(db: Connection, path: Path) -> None:
    """Raise StoreError unless the schema is the one this code reads."""
    with Transaction(db, write=False):
        found = check_schema(db, path)
    if found != VERSION:
        raise StoreError(
            f"database {path} has schema {found}, not {VERSION}: let a worker open it first"
        )


def migrate(db: Connection, path: Path) -> None:
    """Bring the schema to VERSION in one transaction, or find it there.

    Several processes may try at once: the first does it, the others find it done.
    """
    with Transaction(db):
        found = check_schema(db, path)
        for number in range(1, found + 1):
            _check_applied(db, path, number)
        for number in range(found + 1, VERSION + 1):
            _apply(db, number)


def _version(db: Connection, path: Path) -> int:
    row = db.execute(query("meta"), ("schema",)).fetchone()
    if row is None or not row[0].isdecimal():
        raise StoreError(f"database {path} does not say its schema: restore it from a backup")
    return int(row[0])


def _apply(db: Connection, number: int) -> None:
    script = migration(number)
    for statement in statements(script):
        db.execute(statement)
    db.execute(query("set_meta"), ("schema", str(number)))
    db.execute(query("set_meta"), (f"migration {number:04}", _checksum(script)))
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _check_applied(db: Connection, path: Path, number: int) -> None:
    row = db.execute(query("meta"), (f"migration {number:04}",)).fetchone()
    if row is None or row[0] != _checksum(migration(number)):
        raise StoreError(
            f"database {path} was made by another edition of schema {number}: use the perdure "
            "that made it, or export its runs there and import them here"
        )


def _checksum(script: str) -> str:
    return hashlib.sha256("\n".join(statements(script)).encode()).hexdigest()
