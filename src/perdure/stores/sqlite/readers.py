"""Readers: connections that only read, a few at a time, on threads of their own.

They never write and never checkpoint, so they neither hinder the writer nor wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final, Literal, TypeVar

from perdure.model.errors import PerdureError
from perdure.stores.sqlite.driver import Connection, Error, connect, explain, patiently

T = TypeVar("T")

_READERS: Final = 2


class Readers:
    """A small pool of reading connections, opened when first needed."""

    def __init__(self, path: Path, *, timeout: float, only: bool = False) -> None:
        """`only`: the whole store is for reading, its file need not be writable."""
        self._path = path
        self._mode: Literal["rw", "ro"] = "ro" if only else "rw"
        self._timeout = timeout
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="perdure-reader")

    async def read(self, work: Callable[[Connection], T]) -> T:
        """The result of reading. Raises StoreError, and what `work` raises (NotFound)."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._read, work)

    async def close(self) -> None:
        """Wait for what is under way and close the connections."""
        await asyncio.to_thread(self._threads.shutdown)
        while (db := self._take()) is not None:
            db.close()

    def _read(self, work: Callable[[Connection], T]) -> T:
        db = self._take()
        try:
            if db is None:
                db = patiently(self._open, self._timeout)
            opened = db
            result = patiently(lambda: work(opened), self._timeout)
        except PerdureError:
            if db is not None:
                self._idle.put(db)
            raise
        except BaseException as error:
            # A fresh connection next time: this one may have seen a file that is gone.
            if db is not None:
                db.close()
            if isinstance(error, Error):
                raise explain(error, self._path) from error
            raise
        self._idle.put(db)
        return result

    def _take(self) -> Connection | None:
        try:
            return self._idle.get_nowait()
        except Empty:
            return None

    def _open(self) -> Connection:
        db = connect(self._path, self._mode)
        try:
            db.execute("PRAGMA query_only = ON")
            db.execute("PRAGMA wal_autocheckpoint = 0")
        except BaseException:
            db.close()
            raise
        return db
