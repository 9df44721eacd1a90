"""Leases on a file: a thread keeps one alive while the loop is blocked; readers write none."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.model.errors import StoreError, Unsupported
from perdure.stores.port import LEASE
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.driver import sqlite3


def test_a_thread_extends_the_lease_while_the_loop_is_blocked(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", synchronous="normal")
        other = SqliteStore(tmp_path / "runs.db", synchronous="normal", unsafe=True)
        await store.open()
        await other.open()
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        now = store.now
        store.now = lambda: now() + LEASE - 1_000_000  # type: ignore[method-assign]
        answers: list[bool] = []
        thread = threading.Thread(target=lambda: answers.append(store.extend("w1")))
        thread.start()
        thread.join()  # the loop stands still for as long
        assert answers == [True]
        other.now = lambda: now() + LEASE + 1_000_000  # type: ignore[method-assign]
        assert await other.register(worker("w2")) == 0
        assert (await other.load(key(1))).run.owner == "w1"
        await other.close()
        await store.close()

    asyncio.run(main())


def test_extending_waits_for_a_lock_and_says_when_it_waited_too_long(tmp_path: Path) -> None:
    # scenario 121
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", busy_timeout=0.1)
        with pytest.raises(StoreError, match="not open"):
            store.extend("w1")
        await store.open()
        await store.register(worker("w1"))
        db = sqlite3.connect(tmp_path / "runs.db", isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked by another process"):
            store.extend("w1")
        db.execute("COMMIT")
        db.close()
        assert store.extend("w1")
        await store.close()

    asyncio.run(main())


def test_a_store_that_is_only_read_hears_of_writes_and_writes_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "runs.db"
        writer, reader = SqliteStore(path), SqliteStore(path, read_only=True)
        await writer.open()
        await reader.open()
        heard = asyncio.Event()
        reader.subscribe(heard.set)
        await start(writer, new(1, owner="w1"))
        await writer.post([message(1, "a")])
        async with asyncio.timeout(30):
            await heard.wait()
        assert len(await reader.mail(key(1), 0)) == 1
        assert dict(await reader.mailed("w1")) == {key(1): 1}
        for change in (
            reader.post([message(1, "b")]), reader.park("w1", []), reader.beat("w1"),
            reader.claim_finished("w1", "order", "run-1"), reader.purge(1), reader.sweep("w1"),
        ):  # fmt: skip
            with pytest.raises(Unsupported, match="read only: nothing was changed"):
                await change
        with pytest.raises(Unsupported, match="read only"):
            reader.extend("w1")
        await reader.close()
        await writer.close()

    asyncio.run(main())


def test_looking_at_workers_removes_nothing_that_tells_the_dead(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "runs.db"
        store, reader = SqliteStore(path), SqliteStore(path, read_only=True)
        await store.open()
        await reader.open()
        for id in ("w1", "w2", "w3"):
            await store.register(worker(id))
        store._workers._mine.pop("w1").release()  # killed: the lock is free, the file is left
        (tmp_path / "runs.db-workers" / "w3.lock").unlink()
        for _ in range(2):
            alive = {seen.info.id: seen.alive for seen in await reader.workers()}
            assert alive == {"w1": False, "w2": True, "w3": True}, "the lease of w3 lasts"
        assert (tmp_path / "runs.db-workers" / "w1.lock").exists()
        await reader.close()
        await store.close()

    asyncio.run(main())


def test_a_closed_store_gives_no_hints_and_takes_no_listeners(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        with pytest.raises(StoreError, match="not open"):
            store.subscribe(lambda: None)
        await store.open()
        calls: list[int] = []
        store.subscribe(lambda: calls.append(1))
        await store.post([])
        await store.close()
        await store.open()
        await start(store, new(1, ready_at=5))
        await commit(store, row(1, 2))
        await asyncio.sleep(0)
        assert calls == []
        await store.close()

    asyncio.run(main())
