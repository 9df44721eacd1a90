"""perdure's own driver keeps what every driver has to keep, over memory and over SQLite."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from perdure import Engine
from perdure.conformance import DriverSuite
from perdure.drivers import Driver
from perdure.stores.memory import MemoryStore
from perdure.stores.port import Store
from perdure.stores.sqlite import SqliteStore
from tests.virtual.engines import kill


class NativeSuite(DriverSuite):
    """An engine over a store; killed, it writes nothing more and the store knows."""

    def store(self) -> Store:
        raise NotImplementedError

    @asynccontextmanager
    async def make(self, things: Sequence[Any]) -> AsyncIterator[Driver]:
        async with Engine(self.store(), things, poll=0.02, grace=0) as engine:
            self.engines = [*getattr(self, "engines", []), engine]
            yield engine.driver

    async def kill(self, driver: Driver) -> None:
        [engine] = [one for one in self.engines if one.driver is driver]
        await kill(engine)
        self.forget(engine._store, engine._shell.worker)

    def forget(self, store: Any, worker: str) -> None:
        raise NotImplementedError


class TestMemory(NativeSuite):
    def begin(self) -> None:
        self._memory = MemoryStore()

    def store(self) -> Store:
        return self._memory

    def forget(self, store: Any, worker: str) -> None:
        store.crash(worker)


class TestSqlite(NativeSuite):
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())

    def end(self) -> None:
        shutil.rmtree(self.folder)

    def store(self) -> Store:
        return SqliteStore(self.folder / "runs.db", synchronous="normal", unsafe=True)

    def forget(self, store: Any, worker: str) -> None:
        store._workers.leave(worker)
