"""Workers meet a disk that is full, files that may not grow, and a lock that somebody keeps: they
say so, lose nothing, do nothing twice, and go on by themselves when it is over."""

from __future__ import annotations

import asyncio
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from perdure import Client, Run, StoreError
from perdure.stores.sqlite.driver import sqlite3
from tests.chaos.filling import FILLING, LARGE, NODES
from tests.chaos.post import LEASE, Place, Post, place, until
from tests.chaos.record import Record

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

RUNS = 12
DISK = 24 * 1024 * 1024
FULL = "cannot grow, the disk is full: free some space"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    at, mount = tmp_path / "disk", shutil.which("mount")
    at.mkdir()
    words = [mount or "", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(at)]
    if mount is None or subprocess.run(words, check=False, capture_output=True).returncode != 0:
        pytest.skip("NOT TESTED: only who may mount a small disk can see one get full")
    yield at
    subprocess.run(["umount", "-l", str(at)], check=True)


class Ballast:
    """A file that takes all the room there is."""

    def __init__(self, disk: Path) -> None:
        self.path = disk / "ballast"
        self._file = self.path.open("wb", buffering=0)

    def fill(self) -> None:
        """To the last byte, again and again: what others free is taken, too."""
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    self._file.write(b"x" * size)
            except OSError:
                continue

    def close(self) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


async def begun(at: Place, client: Client) -> list[Run[Any]]:
    """Many runs, and some of the work done."""
    runs = [await client.start(FILLING, {"n": n}, id=str(n)) for n in range(RUNS)]
    await asyncio.to_thread(until, lambda: len(at.executions()) >= RUNS * NODES // 4)
    return runs


async def ended(runs: list[Run[Any]]) -> None:
    async with asyncio.timeout(60):
        for n, run in enumerate(runs):
            assert await run.result() == {"last": str(n % 10) * LARGE}


def check(at: Place, record: Record, *, repeats: int = 0) -> None:
    """What was recorded before still is, each outcome once; little was done again."""
    record.look()
    assert len(record.recorded) == RUNS * NODES
    assert RUNS * NODES <= len(at.executions()) <= RUNS * NODES + repeats
    db = sqlite3.connect(at.db)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


@pytest.mark.rule("G-100")
def test_runs_stand_still_while_the_disk_is_full_and_go_on_when_there_is_room(
    tmp_path: Path, disk: Path
) -> None:
    async def main(at: Place, ballast: Ballast) -> None:
        at.launch(), at.launch()
        async with Client(f"sqlite:///{at.db}") as client:
            runs = await begun(at, client)
            record = Record(at.db)
            ballast.fill()
            await asyncio.to_thread(until, lambda: FULL in at.said())
            record.look()
            # Past the leases, which cannot be extended: there is no room for that either.
            for _ in range(8):
                ballast.fill()
                await asyncio.sleep((LEASE + 1) / 8)
            executed = len(at.executions())
            assert executed < RUNS * NODES
            assert (await runs[0].describe()).workflow == "filling", "reading goes on"
            with pytest.raises(StoreError, match="the disk is full"):
                await client.start(FILLING, {"n": 1}, id="one more")
            with pytest.raises(StoreError, match="the disk is full"):
                await runs[0].signal("go", "x" * 100_000)
            assert len(at.executions()) == executed, "nothing is begun that cannot be recorded"
            record.look()
            ballast.close()
            await ended(runs)
            # A worker that others declared dead meanwhile has what it was at done again.
            check(at, record, repeats=2 * RUNS)

    with place(tmp_path, disk) as at, closing(Ballast(disk)) as ballast:
        asyncio.run(main(at, ballast))


def test_a_worker_killed_on_a_full_disk_is_followed_by_one_that_says_what_is_wrong(
    tmp_path: Path, disk: Path
) -> None:
    async def main(at: Place, ballast: Ballast) -> None:
        first = at.launch()
        async with Client(f"sqlite:///{at.db}") as client:
            runs = await begun(at, client)
            record = Record(at.db)
            ballast.fill()
            await asyncio.to_thread(until, lambda: FULL in at.said())
            first.process.kill()
            first.process.communicate()
            record.look()
            ballast.fill()
            with pytest.raises(AssertionError, match="the worker ended: 1"):
                await asyncio.to_thread(at.launch)
            last = at.said().splitlines()[-1]
            assert "StoreError: " in last
            assert str(at.db) in last
            assert "the disk is full" in last
            assert "permissions" not in last
            record.look()
            ballast.close()
            at.launch()
            await ended(runs)
            check(at, record, repeats=RUNS)

    with place(tmp_path, disk) as at, closing(Ballast(disk)) as ballast:
        asyncio.run(main(at, ballast))


def test_runs_stand_still_while_files_may_not_grow_and_go_on_when_they_may(tmp_path: Path) -> None:
    async def main(at: Place) -> None:
        worker = at.launch()
        limit(worker, 1_000_000)
        async with Client(f"sqlite:///{at.db}") as client:
            runs = [await client.start(FILLING, {"n": n}, id=str(n)) for n in range(RUNS)]
            record = Record(at.db)
            wrong = "could not be read or written: check the disk"
            await asyncio.to_thread(until, lambda: wrong in at.said())
            record.look()
            await asyncio.sleep(LEASE + 1)
            assert len(at.executions()) < RUNS * NODES
            record.look()
            limit(worker, resource.RLIM_INFINITY)
            await ended(runs)
            check(at, record)

    with place(tmp_path) as at:
        asyncio.run(main(at))


def limit(worker: Post, size: int) -> None:
    """How long a file may become that this worker writes."""
    hard = resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(worker.process.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_runs_stand_still_while_somebody_keeps_the_lock_and_go_on_afterwards(
    tmp_path: Path,
) -> None:
    # scenario 121: for longer than a lock is waited for, and than a lease
    async def main(at: Place) -> None:
        at.launch(), at.launch()
        async with Client(f"sqlite:///{at.db}") as client:
            runs = await begun(at, client)
            record = Record(at.db)
            db = sqlite3.connect(at.db, isolation_level=None)
            db.execute("PRAGMA busy_timeout = 10000")
            db.execute("BEGIN IMMEDIATE")
            record.look()
            await asyncio.to_thread(until, lambda: "is locked by another process" in at.said())
            await asyncio.sleep(LEASE)
            recorded = set(record.recorded)
            record.look()
            assert record.recorded == recorded
            assert len(at.executions()) < RUNS * NODES
            db.execute("ROLLBACK")
            db.close()
            await ended(runs)
            check(at, record, repeats=2 * RUNS)

    with place(tmp_path) as at:
        asyncio.run(main(at))
