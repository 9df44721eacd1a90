"""What SQLite allows for short runs: bare inserts of a run row and its two journal rows."""

from __future__ import annotations

import tempfile
import time
from importlib.resources import files
from pathlib import Path

from bench.ceilings import keys
from perdure.stores.rows import NEVER
from perdure.stores.sqlite.driver import sqlite3

RUNS_A_COMMIT = 64
_AT = 1_700_000_000_000_000
_WRITER = "0195f2a0-0000-7000-8000-000000000000"
_RUN = (
    "INSERT INTO run (key, definition, id, version, hash, status, created, ready_at, metadata) "
    "VALUES (?, 'plain', ?, '0123456789ab', ?, 'completed', ?, ?, X'7B7D')"
)
_JOURNAL = (
    "INSERT INTO journal (run, seq, at, writer, commit_id, read, body) VALUES (?, ?, ?, ?, 1, 0, ?)"
)


def grouped_starts(runs: int, synchronous: str, body: int) -> float:
    """Runs a second; the store's own tables and indexes, nothing decided and nothing answered."""
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.executescript(files("perdure.stores.sqlite").joinpath("schema/0001.sql").read_text())
        data, born = b"x" * body, keys(runs)
        begin = time.perf_counter()
        for at in range(0, runs, RUNS_A_COMMIT):
            some = born[at : at + RUNS_A_COMMIT]
            db.execute("BEGIN IMMEDIATE")
            db.executemany(_RUN, [(key, key.hex(), "0" * 64, _AT, NEVER) for key in some])
            rows = [(key, seq, _AT, _WRITER, data) for key in some for seq in (1, 2)]
            db.executemany(_JOURNAL, rows)
            db.execute("COMMIT")
        took = time.perf_counter() - begin
        db.close()
    return runs / took
