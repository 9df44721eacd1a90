"""A writer killed in the middle: what it was told is durable is there, and no batch is torn."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from perdure.conformance.rows import key, worker
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.driver import has_wal_reset_bug
from tests.integration.stores.sqlite.writing_process import RUNS
from tests.tidy.tree import ROOT


def spawn(path: Path, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.stores.sqlite.writing_process", str(path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
        **more,
    )


def killed_after(path: Path, batches: int, pause: float) -> int:
    """Let a process write, kill it at some moment; the last batch it said was durable."""
    with spawn(path) as process:
        assert process.stdout is not None
        last = 0
        for _ in range(batches):
            last = int(process.stdout.readline())
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split("\n")
        # The last line may be cut.
        return max([last, *[int(line) for line in rest[:-1]]])


@pytest.mark.slow
@pytest.mark.chaos
@pytest.mark.parametrize("n", range(4))
def test_no_batch_is_torn_and_none_that_was_acknowledged_is_lost(tmp_path: Path, n: int) -> None:
    path = tmp_path / "runs.db"
    acknowledged = killed_after(path, batches=3 + 7 * n, pause=0.0007 * n)

    async def main() -> None:
        store = SqliteStore(path)
        await store.open()
        lengths = set()
        for run in range(RUNS):
            journal = (await store.load(key(run))).journal
            assert [r.seq for r in journal] == list(range(1, len(journal) + 1))
            lengths.add(len(journal))
            if run % 5 == 0:
                refs = [(r.seq, 0) for r in journal[1:]]
                assert await store.payloads(key(run), refs) == [b"p" * 5000] * len(refs)
        [length] = lengths
        assert length >= acknowledged
        # Its lock went with it: its runs are free at once.
        assert await store.register(worker("heir")) == RUNS
        assert len(await store.claim_runs("heir", ["order"], 100)) == RUNS
        await store.close()

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.chaos
def test_a_living_process_keeps_its_runs_until_it_is_killed(tmp_path: Path) -> None:
    if has_wal_reset_bug():
        pytest.skip("this SQLite has the WAL-reset bug: a second process is refused")
    path = tmp_path / "runs.db"

    async def registered(id: str) -> int:
        store = SqliteStore(path)
        await store.open()
        freed = await store.register(worker(id))
        await store.unregister(id)
        await store.close()
        return freed

    with spawn(path) as process:
        assert process.stdout is not None
        for _ in range(5):
            process.stdout.readline()
        assert asyncio.run(registered("early")) == 0
        before = int(process.stdout.readline())
        assert int(process.stdout.readline()) == before + 1, "it goes on writing undisturbed"
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
    assert asyncio.run(registered("late")) == RUNS
