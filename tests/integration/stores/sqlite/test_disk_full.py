"""A full disk: an error that says so, nothing lost, and on it goes when there is room."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from perdure.conformance.rows import commit, key, new, row, start
from perdure.model.errors import StoreError
from perdure.stores.sqlite import SqliteStore


def test_a_full_disk_loses_nothing_and_the_same_rows_go_in_later(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", synchronous="normal")
        await store.open()
        await start(store, *[new(n, owner="w1") for n in range(8)])
        writer = store._write

        def pages(most: int) -> None:
            writer._db.execute(f"PRAGMA max_page_count = {most}").fetchall()

        pages(60)
        body, seq = b"x" * 4000, 2
        with pytest.raises(StoreError, match="the disk is full: free some space"):
            while True:
                batch = [row(n, seq, body=body, payloads=[b"big" * 2000]) for n in range(8)]
                assert set(await commit(store, *batch)) == {"accepted"}
                seq += 1
        with pytest.raises(StoreError, match="the disk is full"):
            await start(store, *[new(n, metadata=b"m" * 4000) for n in range(100, 120)])
        for n in range(8):
            assert [r.seq for r in (await store.load(key(n))).journal] == list(range(1, seq))
        pages(1_000_000)
        assert set(await commit(store, *batch)) == {"accepted"}
        assert set(await commit(store, *batch)) == {"mine"}
        assert [s.outcome for s in await start(store, new(100))] == ["created"]
        await store.close()

    asyncio.run(main())


def test_a_store_closes_quietly_when_its_log_cannot_be_copied(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        await start(store, new(1, owner="w1"))
        store._write._db.set_progress_handler(lambda: 1, 1)  # nothing succeeds any more
        await store.close()
        await store.open()
        assert (await store.load(key(1))).run.status == "running"
        await store.close()

    asyncio.run(main())
