"""A database moved or deleted under a store: nothing more is accepted that would be lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from perdure.conformance.rows import commit, key, new, row, start, worker
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
