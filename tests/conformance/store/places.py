"""Where the conformance suites find our own stores."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from perdure.conformance import StoreSuite
from perdure.stores.memory import MemoryStore
from perdure.stores.port import Store
from perdure.stores.sqlite import SqliteStore


class MemorySuite(StoreSuite):
    """Memory: a restart is the same object opened again."""

    def begin(self) -> None:
        self._memory = MemoryStore()

    def make(self) -> Store:
        return self._memory

    def kill(self, store: Any, worker: str) -> None:
        store.crash(worker)


class SqliteSuite(StoreSuite):
    """A SQLite file: a restart is another store on it."""

    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())

    def end(self) -> None:
        shutil.rmtree(self.folder)

    def make(self) -> Store:
        # What is asked here does not depend on how often the disk is waited for. One process: a
        # library that several must not share is as good as any.
        return SqliteStore(self.folder / "runs.db", synchronous="normal", unsafe=True)

    def kill(self, store: Any, worker: str) -> None:
        # The lock goes with the process; here only with the worker.
        store._workers.leave(worker)
