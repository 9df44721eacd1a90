"""The schema: made, brought up to date, or refused.

A file is looked at before anything is written to it: one that is no database, somebody else's,
damaged or of a newer perdure is left exactly as it was.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from perdure.model.errors import StoreError
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import migration, query, statements
from perdure.stores.sqlite.transaction import Transaction

#: Marks a database as perdure's: "Perd" in ASCII.
APPLICATION_ID: Final = 0x50657264
#: The schema this code works with: the number of the last file in `schema/`.
VERSION: Final = 1

_MAGIC: Final = b"SQLite format 3\x00"
_HEADER: Final = 100


def check_file(path: Path) -> None:
    """Raise StoreError for a path that cannot become, or is not, a whole SQLite database."""
    if not path.parent.is_dir():
        raise StoreError(f"folder {path.parent} does not exist: create it, or give another path")
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"database {path} cannot be read: {error.strerror}") from error
    if not header:
        return
    if not header.startswith(_MAGIC):
        raise StoreError(f"{path} is not a SQLite database: give another path, it was left as is")
    _check_length(path, header)


def _check_length(path: Path, header: bytes) -> None:
    """A file shorter than its header says has lost its end (a cut copy, a full disk)."""
    pages = int.from_bytes(header[28:32], "big")
    page_size = int.from_bytes(header[16:18], "big")
    page_size = 65536 if page_size == 1 else page_size
    wal = Path(f"{path}-wal")
    # With a log beside it the file may rightly be short: its pages are still in the log.
    logged = wal.exists() and wal.stat().st_size > 0
    size = path.stat().st_size
    if not logged and size < pages * page_size:
        raise StoreError(
            f"database {path} is damaged: {size:,} bytes of {pages * page_size:,}; restore it "
            "from a backup"
        )


def check_schema(db: Connection, path: Path) -> int:
    """The version of the schema, 0 if the database is empty.

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
