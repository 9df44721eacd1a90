"""Locks of the operating system, by which a process's death is seen at once.

A lock belongs to an open file and is gone with the process, however it ended. Two stores of one
process hold their locks apart: neither takes the other for dead. Not for network file systems,
and neither is SQLite.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
import weakref
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from perdure.model.errors import StoreError
from perdure.stores.rows import NEVER

#: Seconds for which a lock file that nobody holds is left alone.
_FRESH: Final = 60.0


class FileLock:
    """A lock on a file of its own, held until `release` or the end of the process."""

    __slots__ = ("__weakref__", "_fd", "path")

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd
        _HELD.add(self)

    @classmethod
    def take(cls, path: Path, *, shared: bool = False) -> FileLock | None:
        """The lock, or None if somebody else holds it. Creates the file."""
        return cls._take(path, shared=shared, flags=os.O_CREAT)

    @classmethod
    def take_there(cls, path: Path) -> FileLock | None:
        """The same of a file that is there. Raises FileNotFoundError."""
        return cls._take(path, shared=False, flags=0)

    @classmethod
    def _take(cls, path: Path, *, shared: bool, flags: int) -> FileLock | None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
            try:
                fcntl.flock(fd, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(fd)
                return None
            except BaseException:
                os.close(fd)
                raise
            if _is_still(path, fd):
                return cls(path, fd)
            os.close(fd)  # its last holder removed the file meanwhile: lock the new one

    def alone(self) -> bool:
        """Make a shared lock exclusive if nobody else holds one."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def sign(self) -> None:
        """Write into the file who holds it, for people and for messages."""
        text = f"process {os.getpid()} on {socket.gethostname()}\n".encode()
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, text, 0)

    def is_there(self) -> bool:
        """Whether the file that is locked is still the one at its path."""
        return self._fd >= 0 and _is_still(self.path, self._fd)

    def release(self, *, remove: bool = False) -> None:
        """Let go; a second time does nothing."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if remove:
            with suppress(OSError):  # what stays is removed when somebody tidies up
                self.path.unlink()
        os.close(fd)

    def forget(self) -> None:
        """In a child made by fork: close the file without unlocking it for the parent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


_HELD: Final[weakref.WeakSet[FileLock]] = weakref.WeakSet()


def _is_still(path: Path, fd: int) -> bool:
    try:
        there = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    mine = os.fstat(fd)
    return (there.st_ino, there.st_dev) == (mine.st_ino, mine.st_dev)


def _after_fork() -> None:
    for lock in list(_HELD):
        lock.forget()


# A child that kept the file open would keep its dead parent's lock alive.
os.register_at_fork(after_in_child=_after_fork)


def is_locked(path: Path) -> bool:
    """Whether somebody, also of this process, holds the lock of a file that is there alone.
    Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def holder(path: Path) -> str:
    """Who signed the lock file, in words."""
    try:
        return path.read_text(encoding="utf-8").strip() or "another process"
    except OSError:
        return "another process"


def advice(error: OSError, otherwise: str) -> str:
    """What to do where a file cannot be written."""
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return "the disk is full, free some space" if full else otherwise


class WorkerLocks:
    """One lock file per registered worker, in a folder beside the database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mine: dict[str, FileLock] = {}

    def take(self, worker: str) -> bool:
        """Hold the lock of a worker of this process; False if it is held already. Raises
        StoreError."""
        try:
            self._folder.mkdir(exist_ok=True)
            lock = FileLock.take(self._file(worker))
            if lock is None:
                return False
            lock.sign()
        except OSError as error:
            raise StoreError(
                f"folder {self._folder} cannot be written ({error.strerror}): "
                + advice(error, "check its permissions")
            ) from error
        self._mine[worker] = lock
        return True

    def drop(self, worker: str) -> None:
        """Let a worker of this process go that is registered no more."""
        if lock := self._mine.pop(worker, None):
            lock.release(remove=True)

    def leave(self, worker: str) -> None:
        """Let one go that is still registered, as the end of this process would: whoever looks
        finds its file, and nobody who holds it."""
        if lock := self._mine.pop(worker, None):
            lock.release()

    def leave_all(self) -> None:
        for worker in list(self._mine):
            self.leave(worker)

    def renew(self, worker: str) -> bool:
        """Lock anew where somebody removed the file of a worker of this process: the lock of a
        file without a name tells nobody anything. Whether that was so. Raises StoreError."""
        lock = self._mine.get(worker)
        # Where it is there and not ours, somebody looks at it: at the next beat.
        if lock is None or lock.is_there() or not self.take(worker):
            return False
        lock.release()
        return True

    def is_dead(self, worker: str, until: int) -> bool:
        """Whether nobody holds the worker's lock; its lease lasts `until`. A file that is not
        there says nothing: the database was copied, or the file removed under a live worker, who
        makes it anew at its next beat. Then the lease says how long to wait, where there is one.
        Nor does one that cannot be opened."""
        if worker in self._mine:
            return False
        try:
            lock = FileLock.take_there(self._file(worker))
        except (FileNotFoundError, NotADirectoryError):
            return until == NEVER
        except OSError:
            return False
        if lock is None:
            return False
        lock.release(remove=True)
        return True

    def seems_dead(self, worker: str, until: int) -> bool:
        """The same for a look: nothing is removed, and reading is all it takes."""
        if worker in self._mine:
            return False
        try:
            return not is_locked(self._file(worker))
        except (FileNotFoundError, NotADirectoryError):
            return until == NEVER
        except OSError:
            return False

    def tidy(self, registered: Collection[str]) -> None:
        """Remove lock files that nobody holds and that belong to no registered worker. Fresh ones
        are left: whoever made them may be about to lock them."""
        kept = {self._file(worker) for worker in (*registered, *self._mine)}
        for file in self._folder.glob("*.lock"):
            with suppress(OSError):  # another removed it, or it is not ours to remove
                if file in kept or time.time() - file.stat().st_mtime < _FRESH:
                    continue
                if (lock := FileLock.take_there(file)) is not None:
                    lock.release(remove=True)

    def _file(self, worker: str) -> Path:
        # Ids are made by the engine; hexadecimal keeps any other from leaving the folder.
        safe = worker if worker.replace("-", "").isalnum() else worker.encode().hex()
        return self._folder / f"{safe}.lock"
