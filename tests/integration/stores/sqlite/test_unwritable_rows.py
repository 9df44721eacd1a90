"""What SQLite can never take is told so, and hinders nothing else (rule 5)."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure.conformance.rows import key, new, row, start, worker
from perdure.engine.lane import Lane
from perdure.stores.answers import Verdict
from perdure.stores.rows import JournalRow
from perdure.stores.sqlite import SqliteStore


def test_one_row_that_cannot_be_written_is_told_so_and_the_rest_is_written(tmp_path: Path) -> None:
    answers: dict[int, Any] = {}

    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        try:
            await start(store, *[new(n, owner="w1") for n in range(7)])
            lane: Lane[JournalRow, Verdict] = Lane(store.commit, alone=lambda: False)
            for n in range(7):
                at = 2**70 if n == 3 else 5
                lane.submit(row(n, 2, at=at), partial(answers.__setitem__, n))
            await asyncio.wait_for(lane.drain(), 10)
            assert [len((await store.load(key(n))).journal) for n in (2, 3, 4)] == [2, 1, 2]
        finally:
            await store.close()

    asyncio.run(main())
    assert isinstance(answers.pop(3), OverflowError)
    assert list(answers.values()) == ["accepted"] * 6


def test_a_worker_that_cannot_be_entered_leaves_no_lock_behind(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        try:
            info = worker("w1")
            with pytest.raises(OverflowError):
                await store.register(msgspec.structs.replace(info, pid=2**70))
            assert await store.register(info) == 0
        finally:
            await store.close()

    asyncio.run(main())
