"""What SQLite allows: bare loops that write journal rows, and the store beside them.

A loop inserts the rows an engine would (same table, same sizes, runs of ten rows, keys in order
of birth) and decides nothing. `python -m bench.ceilings` prints the store's commits as ratios.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow, NewRun
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.driver import Connection, sqlite3

ROWS_A_RUN = 10
BODY = 350
_WRITER = "0195f2a0-0000-7000-8000-000000000000"
_AT = 1_700_000_000_000_000
_INSERT = "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)"


def grouped_commit(
    rows_per_commit: int = 64,
    seconds: float = 1.0,
    synchronous: str = "full",
    *,
    body: int = BODY,
    thread: bool = True,
    folder: Path | None = None,
) -> float:
    """Rows a second of the bare loop: `rows_per_commit` runs advance by a row in each commit.
    In a thread of its own, whose caller waits, or (`thread=False`) on the caller's."""
    rates: list[float] = []

    def loop() -> None:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            rates.append(
                _bare(Path(place) / "bare.db", rows_per_commit, seconds, synchronous, body)
            )

    if thread:
        writer = threading.Thread(target=loop)
        writer.start()
        writer.join()
    else:
        loop()
    return rates[0]


def single_commit(seconds: float = 1.0, synchronous: str = "full", *, body: int = BODY) -> float:
    """Rows a second of one row a commit, on the caller's thread."""
    return grouped_commit(1, seconds, synchronous, body=body, thread=False)


@contextmanager
def commits(synchronous: str, *, body: int = BODY) -> Iterator[Callable[[int], float]]:
    """A function that does so many commits of one row, on the caller's thread, when it is called;
    the seconds they took. For a ceiling in turn with single operations, at their pace."""
    with tempfile.TemporaryDirectory() as folder:
        db = _bare_journal(Path(folder) / "bare.db", synchronous)
        data, [run], numbers = b"x" * body, keys(1), count(1)

        def some(commits: int) -> float:
            begin = time.perf_counter()
            for seq in islice(numbers, commits):
                db.execute("BEGIN IMMEDIATE")
                db.execute(_INSERT, (run, seq, _AT, _WRITER, seq, 0, data))
                db.execute("COMMIT")
            return time.perf_counter() - begin

        yield some
        db.close()


def store_commit(
    rows_per_commit: int = 64,
    seconds: float = 1.0,
    synchronous: str = "full",
    *,
    body: int = BODY,
    folder: Path | None = None,
) -> float:
    """Rows a second of the store's own `commit`, one batch after another; starts not counted."""
    return asyncio.run(_store_commit(rows_per_commit, seconds, synchronous, body, folder))


def keys(count: int) -> list[bytes]:
    """Keys of `count` runs born now, in order."""
    born = (time.time_ns() // 1_000_000).to_bytes(6, "big")
    return sorted(born + os.urandom(10) for _ in range(count))


def _bare_journal(path: Path, synchronous: str) -> Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA synchronous = {synchronous}")
    db.execute(
        "CREATE TABLE journal (run BLOB NOT NULL, seq INTEGER NOT NULL, at INTEGER NOT NULL, "
        "writer TEXT NOT NULL, commit_id INTEGER NOT NULL, read INTEGER NOT NULL, "
        "body BLOB NOT NULL, PRIMARY KEY (run, seq))"
    )
    return db


def _bare(path: Path, rows: int, seconds: float, synchronous: str, body: int) -> float:
    db = _bare_journal(path, synchronous)
    data, written, begin = b"x" * body, 0, time.perf_counter()
    for runs in _generations(rows):
        for seq in range(1, ROWS_A_RUN + 1):
            batch = [(run, seq, _AT, _WRITER, seq, 0, data) for run in runs]
            db.execute("BEGIN IMMEDIATE")
            db.executemany(_INSERT, batch)
            db.execute("COMMIT")
            written += rows
        if time.perf_counter() - begin > seconds:
            break
    rate = written / (time.perf_counter() - begin)
    db.close()
    return rate


def _generations(count: int) -> Iterator[list[bytes]]:
    while True:
        yield keys(count)


async def _store_commit(
    rows: int, seconds: float, synchronous: Any, body: int, folder: Path | None
) -> float:
    with tempfile.TemporaryDirectory(dir=folder) as place:
        store = SqliteStore(Path(place) / "store.db", synchronous=synchronous)
        await store.open()
        data, written, spent = b"x" * body, 0, 0.0
        while spent < seconds:
            runs = keys(rows)
            first = [JournalRow(run, 1, _AT, _WRITER, 1, data) for run in runs]
            new = [
                NewRun(run, "bench", run.hex(), "1", "h", _AT, row, owner=_WRITER)
                for run, row in zip(runs, first, strict=True)
            ]
            await answered(partial(store.start, new))
            begin = time.perf_counter()
            for seq in range(2, ROWS_A_RUN + 2):
                batch = [JournalRow(run, seq, _AT, _WRITER, seq, data) for run in runs]
                await answered(partial(store.commit, batch))
                written += rows
            spent += time.perf_counter() - begin
        await store.close()
    return written / spent


async def answered(send: Callable[[CommitDone], None]) -> None:
    """Send a batch and wait for its answer, which must be good."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    send(answer.set_result)
    verdicts = await answer
    if isinstance(verdicts, Exception):
        raise verdicts


def main() -> None:
    """Each case three times, in turn with its ceiling; the middle ratio."""
    for synchronous in ("full", "normal"):
        for rows in (1, 8, 64):
            pairs = []
            for _ in range(3):
                bare = grouped_commit(rows, 1.0, synchronous)
                pairs.append((store_commit(rows, 1.0, synchronous), bare))
            pairs.sort(key=lambda pair: pair[0] / pair[1])
            store, bare = pairs[1]
            print(
                f"SQLite {synchronous:6} {rows:2} rows a commit: store {store:8,.0f} rows/s, "
                f"bare loop {bare:8,.0f} rows/s, ratio {store / bare:.2f}"
            )


if __name__ == "__main__":
    main()
