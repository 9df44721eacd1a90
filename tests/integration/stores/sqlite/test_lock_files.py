"""Lock files of workers: what one that is missing means, and what becomes of those left behind."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from pathlib import Path

import pytest

from perdure.conformance.rows import key, new, start, worker
from perdure.stores.port import LEASE
from perdure.stores.rows import NEVER
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.locks import WorkerLocks

FOLDER = "runs.db-workers"


async def opened(folder: Path) -> SqliteStore:
    store = SqliteStore(folder / "runs.db", synchronous="normal", unsafe=True)
    await store.open()
    return store


def test_a_worker_whose_lock_folder_was_removed_keeps_its_runs_and_locks_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        here, there = await opened(tmp_path), await opened(tmp_path)
        await here.register(worker("w1"))
        await there.register(worker("w2"))
        await start(here, new(1, owner="w1"))
        shutil.rmtree(tmp_path / FOLDER)
        assert await there.sweep("w2") == 0, "its lease says that it lives"
        with caplog.at_level(logging.WARNING):
            for _ in range(3):
                assert (await here.beat("w1")).held == {key(1)}
                assert (await there.beat("w2")).alive
        told = [r.message for r in caplog.records if "made anew" in r.message]
        assert len(told) == 2, "once for each worker"
        assert told[0].startswith(f"somebody removed the lock file of this worker from {tmp_path}")
        assert sorted(p.name for p in (tmp_path / FOLDER).iterdir()) == ["w1.lock", "w2.lock"]
        here._workers.leave("w1")
        assert await there.sweep("w2") == 1, "the new lock tells of its death at once"
        await here.close()
        await there.close()

    asyncio.run(main())


def test_without_its_file_a_worker_is_dead_when_its_lease_is_over(tmp_path: Path) -> None:
    """A restored or copied database has rows of workers and no locks."""

    async def main() -> None:
        store = await opened(tmp_path)
        await store.register(worker("w1"))
        await start(store, new(1, owner="w1"))
        await store.close()
        shutil.rmtree(tmp_path / FOLDER)
        other = await opened(tmp_path)
        assert await other.register(worker("w2")) == 0
        now = other.now
        other.now = lambda: now() + LEASE + 1  # type: ignore[method-assign]
        assert await other.sweep("w2") == 1
        await other.close()

    asyncio.run(main())


def test_one_without_a_lease_has_its_lock_alone(tmp_path: Path) -> None:
    """A worker of an older perdure."""
    locks = WorkerLocks(tmp_path / "never-made")
    assert locks.is_dead("w1", NEVER)
    assert locks.seems_dead("w1", NEVER)
    assert not locks.is_dead("w1", 5)
    assert not locks.seems_dead("w1", 5)
    assert not (tmp_path / "never-made").exists()


def test_lock_files_of_workers_that_were_struck_off_and_have_ended_since_are_removed(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store, other = await opened(tmp_path), await opened(tmp_path)
        folder = tmp_path / FOLDER
        for id in ("deaf", "ended", "well"):
            await store.register(worker(id))
        now = other.now
        other.now = lambda: now() + LEASE + 1  # type: ignore[method-assign]
        await other.register(worker("late"))  # strikes off all three, which are there still
        store._workers.leave("ended")
        (folder / "fresh.lock").touch()
        for file in folder.iterdir():
            if file.stem != "fresh":
                os.utime(file, (1, 1))
        await other.register(worker("last"))
        assert sorted(file.stem for file in folder.iterdir()) == [
            "deaf", "fresh", "last", "late", "well",
        ]  # fmt: skip
        await store.close()
        await other.close()

    asyncio.run(main())
