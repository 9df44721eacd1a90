"""A reader that meets an odd error leaves nothing behind."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from perdure.conformance.rows import key
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.driver import Connection


def test_a_reader_that_meets_an_odd_error_closes_its_connection(tmp_path: Path) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db")
        await store.open()
        used: list[Connection] = []

        def odd(db: Connection) -> None:
            used.append(db)
            raise ZeroDivisionError

        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                await store._read.read(odd)
        for db in used:
            with pytest.raises(Exception, match="closed"):
                db.execute("SELECT 1")
        assert (await store.mail(key(1), 0)) == []
        await store.close()

    asyncio.run(main())
