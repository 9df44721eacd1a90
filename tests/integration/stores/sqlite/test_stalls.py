"""Stalls and odd errors at the stores: nobody's act is missed, nothing is leaked."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.model.errors import PayloadMissing
from perdure.model.status import RunStatus
from perdure.stores.memory import MemoryStore
from perdure.stores.port import NEVER, Finish
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.driver import Connection

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite"])


async def opened(kind: str, folder: Path) -> Any:
    store: Any = MemoryStore() if kind == "memory" else SqliteStore(folder / "runs.db")
    await store.open()
    await store.register(worker("w1"))
    return store


@KINDS
@pytest.mark.parametrize("act", ["cancel", "unpause", "signal"])
def test_who_acts_between_a_claim_and_the_stall_it_ends_in_is_heard(
    kind: str, act: str, tmp_path: Path
) -> None:
    async def main() -> None:
        store = await opened(kind, tmp_path)
        await start(store, new(1, ready_at=5))
        await store.post([message(1, "before", kind="cancel")])
        [claim] = await store.claim_runs("w1", ["order"], 9)
        assert claim.mail == 1
        await store.post([message(1, "now", kind=act)])
        heard = asyncio.Event()
        store.subscribe(heard.set)
        await store.give_back("w1", claim, "its code is gone")
        found = (await store.load(key(1))).run
        if act == "signal":
            assert (found.stalled, found.ready_at) == ("its code is gone", NEVER)
        else:
            assert found.stalled is None
            async with asyncio.timeout(30):
                await heard.wait()
            [again] = await store.claim_runs("w1", ["order"], 9)
            await store.give_back("w1", again, "its code is gone")
            assert (await store.load(key(1))).run.stalled, "one act, one try more"
        await store.close()

    asyncio.run(main())


@KINDS
@pytest.mark.parametrize("status", ["completed", "failed"])
def test_a_retry_that_ends_at_once_is_on_the_version_that_ended_it(
    kind: str, status: RunStatus, tmp_path: Path
) -> None:
    async def main() -> None:
        store = await opened(kind, tmp_path)
        await start(store, new(1, owner="w1"))
        await commit(store, row(1, 2, change=Finish("failed", NEVER)))
        before = (await store.load(key(1))).run
        claim = await store.claim_finished("w1", "order", "run-1")
        end = Finish(status, NEVER, version="2", hash="h2")
        await commit(store, row(1, 3, epoch=claim.epoch, change=end))
        after = (await store.load(key(1))).run
        assert (before.version, before.hash) != ("2", "h2")
        assert (after.status, after.version, after.hash) == (status, "2", "h2")
        await store.close()

    asyncio.run(main())


@KINDS
def test_a_payload_that_is_gone_is_told_apart_from_a_store_that_is_away(
    kind: str, tmp_path: Path
) -> None:
    async def main() -> None:
        store = await opened(kind, tmp_path)
        await start(store, new(1, owner="w1"))
        with pytest.raises(PayloadMissing, match="lacks the payload"):
            await store.payloads(key(1), [(1, 7)])
        await store.close()

    asyncio.run(main())


def test_a_reader_that_meets_an_odd_error_closes_its_connection(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened("sqlite", tmp_path)
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
