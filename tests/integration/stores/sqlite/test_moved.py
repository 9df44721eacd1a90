"""A database moved or deleted under a store: nothing more is accepted that would be lost."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.model.errors import StoreError
from perdure.stores.sqlite import SqliteStore

GONE = "was moved, deleted or replaced while in use: put it back"


@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_accepted_for_a_database_that_is_not_there_any_more(
    tmp_path: Path, replaced: bool
) -> None:
    path, aside = tmp_path / "runs.db", tmp_path / "aside.db"

    async def main() -> None:
        store = SqliteStore(path)
        await store.open()
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        path.rename(aside)
        if replaced:
            path.write_bytes(b"")
        with pytest.raises(StoreError, match=GONE):
            await commit(store, row(1, 2, writer="w1"))
        with pytest.raises(StoreError, match=GONE):
            await start(store, new(2, owner="w1"))
        with pytest.raises(StoreError, match=GONE):
            await store.claim_runs("w1", ["order"], 10)
        aside.rename(path)
        assert await commit(store, row(1, 2, writer="w1")) == ["accepted"]
        assert [s.outcome for s in await start(store, new(2, owner="w1"))] == ["created"]
        await store.close()
        await store.open()
        assert len((await store.load(key(1))).journal) == 2
        await store.close()

    asyncio.run(main())


LOG_GONE = "was moved, deleted or replaced while in use: nothing is written"


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
@pytest.mark.parametrize("replaced", [False, True])
def test_nothing_is_accepted_while_the_log_is_not_there(
    tmp_path: Path, ending: str, replaced: bool
) -> None:
    path = tmp_path / "runs.db"
    log, aside = Path(f"{path}{ending}"), tmp_path / "aside"

    def take_away() -> None:
        log.rename(aside)
        if replaced:
            log.write_bytes(b"")

    async def main() -> None:
        store = SqliteStore(path)
        await store.open()
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        take_away()
        with pytest.raises(StoreError, match=LOG_GONE):
            await commit(store, row(1, 2, writer="w1"))
        with pytest.raises(StoreError, match=LOG_GONE):
            await store.post([message(1, "m1")])
        aside.rename(log)
        assert await commit(store, row(1, 2, writer="w1")) == ["accepted"]
        await store.close()

    asyncio.run(main())


def test_no_second_log_is_begun_while_a_worker_lives_and_its_end_saves_what_it_recorded(
    tmp_path: Path,
) -> None:
    path = tmp_path / "runs.db"
    files = [Path(f"{path}{ending}") for ending in ("-wal", "-shm")]

    async def main() -> None:
        store, other = SqliteStore(path), SqliteStore(path)
        await store.open()
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        for file in files:
            file.unlink()
        with pytest.raises(StoreError, match=LOG_GONE):
            await other.open()
        with pytest.raises(StoreError, match=LOG_GONE):
            await SqliteStore(path, read_only=True).open()
        with pytest.raises(StoreError, match=LOG_GONE):
            await asyncio.to_thread(store.extend, "w1")
        assert not any(file.exists() for file in files)
        await store.close()
        await other.open()
        assert len((await other.load(key(1))).journal) == 1
        await other.close()

    asyncio.run(main())


def test_a_folder_of_locks_that_is_none_is_a_store_error_and_ends_nothing(tmp_path: Path) -> None:
    path, locks = tmp_path / "runs.db", tmp_path / "runs.db-workers"

    async def main() -> None:
        store, other = SqliteStore(path), SqliteStore(path)
        for one, name in ((store, "w1"), (other, "w2")):
            await one.open()
            await one.register(worker(name))
        shutil.rmtree(locks)
        locks.write_bytes(b"")
        with pytest.raises(StoreError, match="cannot be written"):
            await store.beat("w1")
        assert await store.sweep("w1") == 0
        locks.unlink()
        assert (await store.beat("w1")).alive
        locks.rename(tmp_path / "aside")
        locks.write_bytes(b"")
        await store.unregister("w1")
        await store.close()
        await other.close()

    asyncio.run(main())
