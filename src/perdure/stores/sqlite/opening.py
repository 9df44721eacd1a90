"""Opening the file: a connection, once it is known to be one of perdure's and ready for use.

Who may open it beside whom is for `sharing` to say; this comes after, or of a file that is only
read, without.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from perdure.model.errors import StoreError
from perdure.stores.sqlite.driver import Connection, Error, connect, explain, patiently
from perdure.stores.sqlite.migrate import check_rights, check_schema, migrate
from perdure.stores.sqlite.queries import make_views
from perdure.stores.sqlite.transaction import Transaction


def opened(
    path: Path, mode: Literal["rwc", "ro"], ready: Callable[[Connection], None], timeout: float
) -> Connection:
    """A connection, after `ready` was content with it, or has made it so; asked again while
    others have the file locked, for `timeout` seconds. Nothing stays open where it raises."""
    db: Connection | None = None
    try:
        db = found = connect(path, mode)
        patiently(lambda: ready(found), timeout)
    except BaseException as error:
        if db is not None:
            db.close()
        if isinstance(error, Error):
            raise explain(error, path) from error
        raise
    return db


def prepare(db: Connection, path: Path, *, safe: bool) -> None:
    """Make the file ready for writing, of today's schema. `safe`: what is committed is on the
    disk before anybody is told."""
    with Transaction(db, write=False):
        check_schema(db, path)
    check_rights(path)
    (mode,) = db.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        raise StoreError(f"database {path} cannot have a log: put it on a local disk")
    db.execute(f"PRAGMA synchronous = {'FULL' if safe else 'NORMAL'}")
    # macOS alone needs to be told that the disk, too, is to be asked; elsewhere nothing.
    db.execute(f"PRAGMA fullfsync = {int(safe)}")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    migrate(db, path)
    make_views(db)
