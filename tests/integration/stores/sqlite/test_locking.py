"""Locks: other connections are waited for, other processes are shared with or refused."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from perdure.conformance.rows import commit, definition, key, new, row, start, worker
from perdure.model.errors import StoreError, Unsupported
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite import sharing as module
from perdure.stores.sqlite.driver import sqlite3
from perdure.stores.sqlite.locks import FileLock, WorkerLocks
from perdure.stores.sqlite.migrate import VERSION


def other(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False)


def test_a_database_locked_for_too_long_is_an_error_and_nothing_is_lost(tmp_path: Path) -> None:
    # scenario 121
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", busy_timeout=0.1)
        await store.open()
        await start(store, new(1, owner="w1"))
        db = other(tmp_path / "runs.db")
        db.execute("BEGIN IMMEDIATE")
        locked = r"runs\.db is locked by another process"
        with pytest.raises(StoreError, match=locked):
            await commit(store, row(1, 2))
        with pytest.raises(StoreError, match=locked):
            await start(store, new(2))
        with pytest.raises(StoreError, match=locked):
            await store.define(definition())
        with pytest.raises(StoreError, match=locked):
            await store.register(worker("w2"))
        # Reading goes on.
        assert len((await store.load(key(1))).journal) == 1
        db.execute("COMMIT")
        db.close()
        assert await commit(store, row(1, 2)) == ["accepted"]
        assert await store.register(worker("w2")) == 1
        await store.close()

    asyncio.run(main())


def test_a_lock_that_is_let_go_in_time_is_waited_for_without_holding_the_loop(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", busy_timeout=30)
        await store.open()
        await start(store, new(1, owner="w1"))
        db = other(tmp_path / "runs.db")
        db.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(commit(store, row(1, 2)))
        # The loop goes round while the commit waits.
        for _ in range(50):
            await asyncio.sleep(0)
        assert not waiting.done()
        db.execute("COMMIT")
        db.close()
        assert await waiting == ["accepted"]
        await store.close()

    asyncio.run(main())


def test_opening_a_database_that_stays_locked_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    db = other(path)
    db.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match=r"runs\.db is locked by another process"):
        asyncio.run(SqliteStore(path, busy_timeout=0.1).open())
    db.close()


def test_a_library_with_the_wal_reset_bug_works_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "has_wal_reset_bug", lambda: True)

    async def main() -> None:
        first, second = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "runs.db")
        await first.open()
        with pytest.raises(StoreError, match=rf"process {os.getpid()} on .*can lose commits"):
            await second.open()
        assert [s.outcome for s in await start(first, new(1))] == ["created"]
        await first.close()
        await second.open()
        await second.close()

    asyncio.run(main())


def test_unsafe_lets_a_second_process_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "has_wal_reset_bug", lambda: True)

    async def main() -> None:
        first = SqliteStore(tmp_path / "runs.db")
        second = SqliteStore(tmp_path / "runs.db", unsafe=True)
        await first.open()
        await second.open()
        assert [s.outcome for s in await start(second, new(1))] == ["created"]
        await second.close()
        await first.close()

    asyncio.run(main())


def test_a_library_with_the_bug_and_one_without_do_not_share_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        first = SqliteStore(tmp_path / "runs.db", busy_timeout=0.1)
        second = SqliteStore(tmp_path / "runs.db")
        monkeypatch.setattr(module, "has_wal_reset_bug", lambda: False)
        await first.open()
        monkeypatch.setattr(module, "has_wal_reset_bug", lambda: True)
        with pytest.raises(StoreError, match="can lose commits"):
            await second.open()
        await first.close()
        await second.open()
        monkeypatch.setattr(module, "has_wal_reset_bug", lambda: False)
        with pytest.raises(StoreError, match="can lose commits"):
            await first.open()
        await second.close()

    asyncio.run(main())


def test_a_process_that_is_just_leaving_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "has_wal_reset_bug", lambda: False)
    leaving = FileLock.take(tmp_path / "runs.db-lock", shared=True)
    assert leaving is not None
    assert leaving.alone()

    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", busy_timeout=60)
        opening = asyncio.ensure_future(store.open())
        done, _ = await asyncio.wait([opening], timeout=0.1)
        assert not done
        leaving.release()
        await opening
        await store.close()

    asyncio.run(main())


def test_two_stores_of_one_process_share_a_file_and_do_not_take_each_other_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "has_wal_reset_bug", lambda: False)

    async def main() -> None:
        a, b = SqliteStore(tmp_path / "runs.db"), SqliteStore(tmp_path / "runs.db")
        await a.open()
        await b.open()
        await a.register(worker("wa"))
        await start(a, new(1, owner="wa"))
        assert await b.register(worker("wb")) == 0
        assert (await b.load(key(1))).run.owner == "wa"
        with pytest.raises(StoreError, match="registered already"):
            await b.register(worker("wa"))
        await a.unregister("wa")
        assert [c.key for c in await b.claim_runs("wb", ["order"], 5)] == [key(1)]
        await a.close()
        assert (tmp_path / "runs.db-wal").exists(), "the log is left to those still there"
        assert await commit(b, row(1, 2, writer="wb")) == ["accepted"]
        await b.close()
        assert not (tmp_path / "runs.db-wal").exists()

    asyncio.run(main())


def test_a_file_is_read_while_another_process_writes_whatever_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "has_wal_reset_bug", lambda: True)

    async def main() -> None:
        path = tmp_path / "runs.db"
        reader = SqliteStore(path, read_only=True)
        with pytest.raises(StoreError, match="does not exist"):
            await reader.open()
        assert not path.exists()
        writer = SqliteStore(path)
        await writer.open()
        await start(writer, new(1, owner="w1", first=row(1, 1, payloads=[b"big"])))
        await reader.open()
        assert await commit(writer, row(1, 2)) == ["accepted"]
        assert len((await reader.load(key(1))).journal) == 2
        assert await reader.payloads(key(1), [(1, 0)]) == [b"big"]
        for change in (
            commit(reader, row(1, 3)), start(reader, new(2)), reader.define(definition()),
            reader.register(worker("w2")), reader.claim_runs("w2", ["order"], 1),
        ):  # fmt: skip
            with pytest.raises(Unsupported, match="read only: nothing was changed"):
                await change
        await writer.close()
        assert len((await reader.load(key(1))).journal) == 2
        await reader.close()
        with pytest.raises(StoreError, match="is not open"):
            await reader.load(key(1))

    asyncio.run(main())


def test_reading_only_wants_a_schema_it_knows(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    path.touch()
    with pytest.raises(StoreError, match=f"has schema 0, not {VERSION}"):
        asyncio.run(SqliteStore(path, read_only=True).open())
    path.write_bytes(b"hello" * 100)
    with pytest.raises(StoreError, match="is not a SQLite database"):
        asyncio.run(SqliteStore(path, read_only=True).open())


def test_a_store_that_closes_without_unregistering_counts_as_dead(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        await store.close()
        await store.open()
        assert await store.register(worker("w2")) == 1
        await store.close()

    asyncio.run(main())


def test_lock_files_of_the_dead_are_removed(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        for n in range(3):
            await store.register(worker(f"w{n}"))
            if n < 2:
                # Killed: the lock is free, the file is left.
                store._workers._mine.pop(f"w{n}").release()
        folder = tmp_path / "runs.db-workers"
        assert [path.name for path in folder.iterdir()] == ["w2.lock"]
        assert (folder / "w2.lock").read_text().startswith(f"process {os.getpid()} on ")
        await store.unregister("w2")
        assert list(folder.iterdir()) == []
        await store.close()

    asyncio.run(main())


def test_a_worker_s_id_does_not_leave_its_folder(tmp_path: Path) -> None:
    locks = WorkerLocks(tmp_path / "workers")
    assert locks.take("../../escape")
    assert locks.take("a/b\x00c")
    assert [path.parent.name for path in tmp_path.rglob("*.lock")] == ["workers"] * 2
    locks.leave_all()


def test_a_lock_file_removed_by_its_last_holder_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    first = FileLock.take(path)
    assert first is not None
    assert FileLock.take(path) is None
    first.release(remove=True)
    second = FileLock.take(path)
    assert second is not None
    assert FileLock.take(path) is None
    second.release()
    second.release()


def test_shared_locks_are_shared_and_one_alone_can_become_exclusive(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    first, second = FileLock.take(path, shared=True), FileLock.take(path, shared=True)
    assert first is not None
    assert second is not None
    assert FileLock.take(path) is None
    assert not first.alone()
    second.release()
    assert first.alone()
    assert FileLock.take(path, shared=True) is None
    first.release()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_forked_child_does_not_keep_its_parent_s_lock(tmp_path: Path) -> None:
    # scenario 123
    path = tmp_path / "x.lock"
    lock = FileLock.take(path)
    assert lock is not None
    (told, tell), (heard, hear) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(hear, b"x")
        os.read(told, 1)
        os._exit(0)
    try:
        os.read(heard, 1)
        lock.release()
        again = FileLock.take(path)
        assert again is not None
        again.release()
    finally:
        os.write(tell, b"x")
        os.waitpid(child, 0)
        for end in (told, tell, heard, hear):
            os.close(end)
