"""Database: the file of a store while it is open, with its writer, its readers, and the locks by
which processes see one another.

Owns opening and closing, in the order that keeps others from taking the file for abandoned. What
is asked of writer and readers is the store's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from perdure.model.errors import StoreError, Unsupported
from perdure.stores.sqlite.driver import Connection, Error, check_version, data_version
from perdure.stores.sqlite.in_place import InPlace
from perdure.stores.sqlite.locks import FileLock, WorkerLocks
from perdure.stores.sqlite.migrate import check_current, check_place
from perdure.stores.sqlite.opening import opened, prepare
from perdure.stores.sqlite.readers import Readers
from perdure.stores.sqlite.sharing import lock_file
from perdure.stores.sqlite.writer import Writer


class Database:
    """`safe`: nothing is lost in a power cut. `unsafe`, `read_only`: see SqliteStore."""

    def __init__(
        self,
        path: Path,
        workers: WorkerLocks,
        *,
        safe: bool,
        unsafe: bool,
        read_only: bool,
        timeout: float,
    ) -> None:
        self._path = path
        self._workers = workers
        self._safe = safe
        self._unsafe = unsafe
        self._read_only = read_only
        self._timeout = timeout
        self._lock: FileLock | None = None
        self._in_place = InPlace(path)
        #: None while it is not open, or only to be read.
        self.writer: Writer | None = None
        self._readers: Readers | None = None
        #: Of a store that is only read: the connection by which it notices writes.
        self._looking: Connection | None = None

    @property
    def is_open(self) -> bool:
        """Whether it can be asked something."""
        return self._readers is not None

    # -------------------------------------------------------------------------- opening, closing

    async def open(self) -> None:
        """Open the file, unless it is open. Raises StoreError."""
        if self._readers is not None:
            return
        if self._read_only:
            self._looking = await asyncio.to_thread(self._look)
        else:
            db = await asyncio.to_thread(self._open)
            self.writer = Writer(db, self._path, timeout=self._timeout, check=self._in_place.check)
        self._readers = Readers(self._path, timeout=self._timeout, only=self._read_only)

    def _look(self) -> Connection:
        """Check what is only to be read."""
        check_version()
        check_place(self._path)
        if not self._path.exists():
            raise StoreError(f"database {self._path} does not exist: check the path")
        return opened(self._path, "ro", lambda db: check_current(db, self._path), self._timeout)

    def _open(self) -> Connection:
        check_version()
        check_place(self._path)
        self._lock = lock_file(self._path, unsafe=self._unsafe, timeout=self._timeout)
        try:
            return opened(self._path, "rwc", self._prepare, self._timeout)
        except BaseException:
            self._release_lock()
            raise

    def _prepare(self, db: Connection) -> None:
        prepare(db, self._path, safe=self._safe)
        self._in_place.remember()

    def _release_lock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def close(self) -> None:
        """Finish what is under way and close the file, if it is open; its workers have left."""
        writer, readers = self.writer, self._readers
        if readers is None:
            return
        self.writer = self._readers = None
        if self._looking is not None:
            self._looking.close()
            self._looking = None
        try:
            await readers.close()
            if writer is not None:
                await writer.close(self._finish)
        finally:
            self._workers.leave_all()
            self._release_lock()

    def _finish(self, db: Connection) -> None:
        """The last work of the writer. Closing the last connection copies the log and removes
        it; with other processes there, theirs will be the last."""
        try:
            if self._lock is not None and self._lock.alone():
                # On a full disk it fails: what is in the log is durable there, too.
                with suppress(Error):
                    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            db.close()

    # ---------------------------------------------------------------------------------- asking

    @property
    def writing(self) -> Writer:
        """The writer. Raises StoreError where it is not open, Unsupported where it is read only."""
        if self.writer is None:
            raise self.no_writer()
        return self.writer

    @property
    def reading(self) -> Readers:
        """The readers. Raises StoreError where it is not open."""
        if self._readers is None:
            raise self._not_open()
        return self._readers

    def check(self) -> None:
        """Raise where nothing must be written now: as `writing` does, and where the file is not in
        its place any more."""
        if self.writer is None:
            raise self.no_writer()
        self._in_place.check()

    def version(self) -> int | None:
        """The file's data version, which is another after each write of another process; None
        where that cannot be told now."""
        if self.writer is not None:
            return self.writer.peek(data_version)
        try:
            return None if self._looking is None else data_version(self._looking)
        except Error:
            return None

    def no_writer(self) -> Exception:
        """Why nothing can be written."""
        if self._readers is None:
            return self._not_open()
        return Unsupported(f"store {self._path} was opened to be read only: nothing was changed")

    def _not_open(self) -> StoreError:
        return StoreError(f"store {self._path} is not open: await open() first")
