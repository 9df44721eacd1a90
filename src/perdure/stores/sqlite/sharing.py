"""The lock file of a database: shared by processes that can share it, held by one alone on a SQLite
library where they cannot (the WAL-reset bug of 3.7.0-3.51.2)."""

from __future__ import annotations

import time
from pathlib import Path

from perdure.model.errors import StoreError
from perdure.stores.sqlite.driver import dotted, has_wal_reset_bug, version
from perdure.stores.sqlite.locks import FileLock, advice, holder


def lock_file(path: Path, *, unsafe: bool, timeout: float) -> FileLock | None:
    """The lock of the database at `path`; None where it is in use and `unsafe` accepts that.

    Waits at most `timeout` seconds, for a process that is leaving. Raises StoreError.
    """
    file = Path(f"{path}-lock")
    alone = has_wal_reset_bug() and not unsafe
    try:
        lock = _in_time(file, alone=alone, unsafe=unsafe, timeout=timeout)
    except OSError as error:
        raise StoreError(
            f"lock file {file} cannot be written ({error.strerror}): "
            + advice(error, "check the permissions of the folder")
        ) from error
    if lock is not None:
        if alone:
            lock.sign()
    elif not unsafe:
        raise StoreError(
            f"database {path} is in use by {holder(file)}, and SQLite "
            f"{dotted(version())} can lose commits when two processes write: stop the other "
            "one, let both use a newer SQLite (pip install 'perdure[sqlite-latest]'), or "
            "accept the risk with unsafe=True (in a URL: ?unsafe=1)"
        )
    return lock


def _in_time(file: Path, *, alone: bool, unsafe: bool, timeout: float) -> FileLock | None:
    """Where processes share, the last one to leave is alone for the moment of its leaving, which
    is waited for."""
    deadline = time.monotonic() + timeout
    while True:
        lock = FileLock.take(file, shared=not alone)
        if lock is not None or alone or unsafe or time.monotonic() > deadline:
            return lock
        time.sleep(0.01)
