"""Whether the files of a database are still those that were opened: itself, its log, and the memory
that its users share.

One that was moved, deleted or replaced under an open connection is written to all the same, and
what is written is gone with the last process that has it open; two processes with two logs
overwrite each other. Better that nothing is written.

This is asked before every write. Nothing is moved, deleted or replaced but its folder changes, so
that one look at the folder is enough, once its last change is old enough for the next one to show.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from perdure.model.errors import StoreError
from perdure.stores.sqlite.locks import is_locked

_Which: TypeAlias = tuple[int, int] | None
#: How old the last change of a folder must be for the next one to have another time, in ns: where
#: the file system counts in seconds; and where it counts finer than the kernel's clock ticks.
_SETTLED: Final = 3_000_000_000
_SETTLED_SOON: Final = 100_000_000
_TICK: Final = 10_000_000
#: Seconds that a worker which is just leaving is waited for, and between two looks.
_LEAVING: Final = 1.0
_PAUSE: Final = 0.02


class InPlace:
    """What the three files are, as of `remember`: each a device and a number."""

    __slots__ = ("_folder", "_log", "_path", "_settled", "_shared", "_was")

    def __init__(self, path: Path) -> None:
        # As text: these are looked at before every write, and Path makes that twice as dear.
        self._path = str(path)
        self._log, self._shared = str(log_of(path)), f"{path}-shm"
        self._was: tuple[_Which, _Which, _Which] = (None, None, None)
        # A link's target is in another folder; and what times mean elsewhere is not known.
        plain = os.name == "posix" and not path.is_symlink()
        self._folder = str(path.parent) if plain else None
        #: The folder as it was when they were last looked at, and could be told from a later one.
        self._settled: tuple[int, int, int] | None = None

    def remember(self) -> None:
        """They are as they are to be. A log that is not there yet is not asked for."""
        self._settled = None
        self._was = (_which(self._path), _which(self._log), _which(self._shared))

    def check(self) -> None:
        """Raise StoreError when one of them is another now, or gone."""
        folder = None if self._folder is None else _state(self._folder)
        if folder is not None and folder == self._settled:
            return
        self._check_each()
        self._settled = folder if folder is not None and _is_old(folder[2]) else None

    def _check_each(self) -> None:
        path, log, shared = self._was
        if _which(self._path) != path:
            raise StoreError(
                f"database {self._path} was moved, deleted or replaced while in use: put it back, "
                "nothing is written until then; or start anew with what is there now"
            )
        if (log and _which(self._log) != log) or (shared and _which(self._shared) != shared):
            raise StoreError(lost_log(Path(self._path)))


def _is_old(changed: int) -> bool:
    """Whether a change that came now would show as another time. Soon matters: whoever looks at a
    file's times makes its next write record them anew, which costs the commit a wait of its own."""
    counts_finely = changed % _TICK != 0
    return time.time_ns() - changed > (_SETTLED_SOON if counts_finely else _SETTLED)


def log_of(path: Path) -> Path:
    """The log of a database."""
    return Path(f"{path}-wal")


def lost_log(path: Path) -> str:
    """What to say of a log that was taken away under those who use it."""
    return (
        f"the log of database {path} (-wal, -shm) was moved, deleted or replaced while in use: "
        "nothing is written until it is back; else end the workers, which saves what they have "
        "recorded, and start them anew"
    )


def check_log(path: Path) -> None:
    """Before a database is opened, for whatever: while a worker lives there is a log. Raise
    StoreError where it was taken away: a second one would be begun."""
    deadline = time.monotonic() + _LEAVING
    while _lives_without_log(path):
        if time.monotonic() > deadline:
            raise StoreError(lost_log(path))
        time.sleep(_PAUSE)


def _lives_without_log(path: Path) -> bool:
    """Whether a worker lived when there was no log: its lock was held before and after."""
    log = log_of(path)
    if log.exists():
        return False
    for file in Path(f"{path}-workers").glob("*.lock"):
        with suppress(OSError):  # it ended meanwhile, or it is not ours to ask
            if is_locked(file) and not log.exists() and is_locked(file):
                return True
    return False


def _which(path: str) -> _Which:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _state(folder: str) -> tuple[int, int, int] | None:
    """Which folder it is, and when its entries changed last."""
    try:
        found = os.stat(folder)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
