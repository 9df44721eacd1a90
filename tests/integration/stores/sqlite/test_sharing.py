"""Several real processes on one file: nobody's mail is lost, no run sleeps over it, and a worker
that is killed or stopped loses its runs and nothing else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from perdure.conformance.rows import commit, key, new, row, start, worker
from perdure.stores.port import LEASE
from perdure.stores.rows import NEVER
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.driver import has_wal_reset_bug, sqlite3
from tests.integration.stores.sqlite.mail_process import RUNS
from tests.integration.stores.sqlite.test_killed import spawn as spawn_writer
from tests.integration.stores.sqlite.writing_process import RUNS as WRITTEN
from tests.tidy.tree import ROOT

POSTS = 1000
PATIENCE = 90.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.chaos,
    pytest.mark.skipif(
        has_wal_reset_bug(), reason="this SQLite has the WAL-reset bug: one process at a time"
    ),
]


def spawn(path: Path, *said: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.integration.stores.sqlite.mail_process", str(path), *said],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdin=subprocess.PIPE,
    )


async def until_posted(store: SqliteStore, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            mail = [(await store.load(key(n))).run.mail for n in range(RUNS)]
            if sum(mail) >= count:
                return
            await asyncio.sleep(0.01)


async def until_all_is_read(store: SqliteStore) -> None:
    async with asyncio.timeout(PATIENCE):
        for n in range(RUNS):
            while True:
                loaded = await store.load(key(n))
                if loaded.run.owner is None and not loaded.mail:
                    break
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("killed", [False, True])
def test_mail_posted_and_read_by_several_processes_is_read_once_in_order(
    tmp_path: Path, killed: bool
) -> None:
    # scenarios 47, 49, 84
    path = tmp_path / "runs.db"

    async def main() -> None:
        store = SqliteStore(path, synchronous="normal", busy_timeout=30)
        await store.open()
        await start(store, *[new(n) for n in range(RUNS)])
        workers = [spawn(path, "work", f"w{n}") for n in range(2)]
        posters = [spawn(path, "post", f"p{n}", str(POSTS)) for n in range(2)]
        try:
            if killed:
                await until_posted(store, POSTS // 2)
                workers[0].kill()
            for process in posters:
                await asyncio.to_thread(process.communicate)
            await until_all_is_read(store)
            for process in workers:
                await asyncio.to_thread(process.communicate)
        finally:
            for process in (*workers, *posters):
                process.kill()
        ends = [process.returncode for process in (*workers, *posters)]
        assert ends == [-signal.SIGKILL if killed else 0, 0, 0, 0]
        posted = 0
        for n in range(RUNS):
            loaded = await store.load(key(n))
            assert [r.seq for r in loaded.journal] == list(range(1, len(loaded.journal) + 1))
            applied = [json.loads(r.body) for r in loaded.journal if r.body.startswith(b"[")]
            ids = [mail.id for mail in await store.mail(key(n), 0)]
            assert [id for some in applied for id in some] == ids
            assert (len(ids), loaded.journal[-1].read) == (loaded.run.mail,) * 2
            assert loaded.run.ready_at <= store.now() or loaded.run.ready_at == NEVER
            posted += len(ids)
        assert posted == 2 * POSTS
        await store.close()

    asyncio.run(main())


def stop_between_two_writes(victim: subprocess.Popen[str], path: Path) -> None:
    """Stopped in the middle of a write it would keep the file locked, for everybody."""
    while True:
        victim.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, victim.pid, os.WSTOPPED)
        with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
            try:
                db.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError:
                victim.send_signal(signal.SIGCONT)


def test_a_stopped_process_loses_its_runs_when_its_lease_ends_and_is_refused_when_it_goes_on(
    tmp_path: Path,
) -> None:
    # scenarios 61, 93, 97
    path = tmp_path / "runs.db"

    async def main(victim: subprocess.Popen[str]) -> None:
        store = SqliteStore(path, synchronous="normal")
        await store.open()
        # Its lock is held, its lease is not over: it is alive.
        assert await store.register(worker("heir")) == 0
        now = store.now
        store.now = lambda: now() + LEASE  # type: ignore[method-assign]
        assert store.extend("heir")
        assert await store.sweep("heir") == WRITTEN
        claims = await store.claim_runs("heir", ["order"], 100)
        assert len(claims) == WRITTEN
        seqs = [(await store.load(key(n))).journal[-1].seq for n in range(WRITTEN)]
        victim.send_signal(signal.SIGCONT)
        # It asserts that its rows are accepted: the first one that is not ends it.
        assert await asyncio.to_thread(victim.wait) == 1
        for n in range(WRITTEN):
            assert (await store.load(key(n))).journal[-1].seq == seqs[n]
            assert await commit(store, row(n, seqs[n] + 1, writer="heir")) == ["accepted"]
        assert not store.extend("victim")
        await store.close()

    with spawn_writer(path, stderr=subprocess.DEVNULL) as victim:
        assert victim.stdout is not None
        for _ in range(3):
            victim.stdout.readline()
        stop_between_two_writes(victim, path)
        try:
            asyncio.run(main(victim))
        finally:
            victim.kill()
