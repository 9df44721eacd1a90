"""Which SQLite is used, how a connection is opened, and what its errors mean.

Every error of the library leaves this package as a StoreError that names the file and says what
to do; the database is never repaired, emptied or overwritten to get past one.
"""

from __future__ import annotations

import sqlite3 as _standard
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

from perdure.model.errors import StoreError
from perdure.stores.sqlite.in_place import check_log

if TYPE_CHECKING:
    import sqlite3 as sqlite3  # noqa: PLC0414  # for others, too
else:
    try:
        from pysqlite3 import dbapi2 as sqlite3
    except ImportError:
        sqlite3 = _standard

T = TypeVar("T")

Connection = sqlite3.Connection
Error = sqlite3.Error
IntegrityError = sqlite3.IntegrityError

#: What the library says of values and statements, never of the file.
_LASTING: Final = (sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
#: How the key of a row or run that is taken says so, and the triggers that a run takes no row.
_TAKEN: Final = "UNIQUE constraint failed: "
_REFUSALS: Final = (f"{_TAKEN}journal.", f"{_TAKEN}run.", "refused", "awaited")

#: STRICT tables; RETURNING, UPDATE FROM and JSON are older.
_OLDEST: Final = (3, 37, 0)
#: Versions with the WAL-reset bug: connections that write and checkpoint at the same moment can
#: lose what was committed.
_WAL_RESET_BUG: Final = ((3, 7, 0), (3, 51, 2))

_BUSY, _LOCKED, _READONLY, _IOERR, _CORRUPT, _FULL, _CANTOPEN, _NOTADB = 5, 6, 8, 10, 11, 13, 14, 26

_ADVICE: Final = {
    _BUSY: "is locked by another process: stop what holds it, or try again",
    _LOCKED: "is locked by another connection: try again",
    _READONLY: "cannot be written: check the permissions of the file and of its folder",
    _IOERR: "could not be read or written: check the disk and the permissions",
    _CORRUPT: "is damaged: restore it from a backup, or rescue the rest with sqlite3's .recover",
    _FULL: "cannot grow, the disk is full: free some space; what was accepted is safe",
    _CANTOPEN: "cannot be opened: check that the folder exists and may be written",
    _NOTADB: "is not a SQLite database: give another path, it was left as it is",
}


def version() -> tuple[int, int, int]:
    """The version of the SQLite library in use."""
    major, minor, patch = sqlite3.sqlite_version_info
    return major, minor, patch


def dotted(numbers: tuple[int, int, int]) -> str:
    """A version as people write it."""
    return ".".join(map(str, numbers))


def has_wal_reset_bug() -> bool:
    """Whether only one process may work on a file with this library."""
    first, last = _WAL_RESET_BUG
    return first <= version() <= last


def check_version() -> None:
    """Raise StoreError if the library is too old."""
    if version() < _OLDEST:
        raise StoreError(
            f"SQLite {dotted(version())} is too old, perdure needs {dotted(_OLDEST)}: "
            "pip install 'perdure[sqlite-latest]'"
        )


def connect(path: Path, mode: Literal["rwc", "rw", "ro"]) -> Connection:
    """A connection without implicit transactions, used by one thread at a time: to a file that
    may be created, that must be there, or that is only read. It waits for no lock by itself. Raises
    StoreError where a new log would be begun beside one that workers still write."""
    check_log(path)
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
    )


def data_version(db: Connection) -> int:
    """A number that changes when another connection, of any process, has committed."""
    (found,) = db.execute("PRAGMA data_version").fetchone()
    return int(found)


def is_busy(error: BaseException) -> bool:
    """Whether the same call may well succeed in a moment."""
    return isinstance(error, Error) and _code(error) in {_BUSY, _LOCKED}


def is_refusal(error: IntegrityError) -> bool:
    """Whether a row was refused for what is there already. Any other constraint the row breaks
    by itself: it can never be written, whoever owns its run."""
    return str(error).startswith(_REFUSALS)


def is_lasting(error: BaseException) -> bool:
    """Whether the same call would fail for ever: what it was given is at fault, not the file."""
    if isinstance(error, IntegrityError):
        return not is_refusal(error)
    if isinstance(error, Error):
        return isinstance(error, _LASTING)
    return isinstance(error, OverflowError | TypeError | ValueError)


def explain(error: BaseException, path: Path) -> StoreError:
    """The error as a StoreError that says what to do."""
    if isinstance(error, StoreError):
        return error
    advice = _ADVICE.get(_code(error) or 0, "failed")
    return StoreError(f"database {path} {advice} ({type(error).__name__}: {error})")


def _code(error: BaseException) -> int | None:
    """The primary result code. Extended codes carry it in their low byte."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def patiently(work: Callable[[], T], seconds: float) -> T:
    """Do it again while the database is locked, until the time is over.

    The library's own wait does not cover every case (changing the journal mode, recovering after
    a crash), so every use of a connection goes through here.
    """
    deadline, pause = time.monotonic() + seconds, 0.001
    while True:
        try:
            return work()
        except Error as error:
            if not is_busy(error) or time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(pause * 2, 0.05)
