"""An idle worker asks a file next to nothing, and still hears of everything."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bench.statements import counted
from perdure.conformance.rows import commit, key, message, new, row, start, worker
from perdure.stores.port import Park, Release, Stall
from perdure.stores.sqlite import SqliteStore
from perdure.stores.sqlite.due import BELIEVED


async def asked(counts: Counter[str], work: Callable[[], Awaitable[object]]) -> int:
    """How many queries it made."""
    before = counts["query"]
    await work()
    return counts["query"] - before


@pytest.mark.parametrize("parked", [0, 300])
def test_a_beat_is_two_statements_and_a_look_at_what_is_due_mostly_none(
    tmp_path: Path, parked: int
) -> None:
    async def main() -> None:
        with counted() as counts:
            store = SqliteStore(tmp_path / "runs.db", synchronous="normal", unsafe=True)
            await store.open()
            await store.register(worker("w1"))
            later = store.now() + 10**12
            await start(store, *[new(n, ready_at=later) for n in range(1, parked + 1)])
            names = [f"order-{n}" for n in range(20)] + ["order"]
            look = lambda: store.claim_runs("w1", names, 10)
            await look()
            await store.beat("w1")
            assert await asked(counts, lambda: store.beat("w1")) == 2
            assert await asked(counts, look) == 0
            now = store.now
            store.now = lambda: now() + BELIEVED  # type: ignore[method-assign]
            assert await asked(counts, look) == 1, "the sweep stays"
            await store.close()

    asyncio.run(main())


def test_what_this_process_makes_due_is_found_although_nothing_was_due_before(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", synchronous="normal")
        await store.open()
        await store.register(worker("w1"))
        await start(store, *[new(n, owner="w1") for n in range(1, 6)])
        changes: list[Callable[[], Awaitable[object]]] = [
            lambda: start(store, new(9, ready_at=5)),
            lambda: commit(store, row(1, 2, change=Release(5))),
            lambda: store.park("w1", [Park(key(2), 0, 0, 5)]),
            lambda: store.unregister("w1"),
        ]
        for change in changes:
            assert await store.claim_runs("w2", ["order"], 9) == []
            await change()
            assert await store.claim_runs("w2", ["order"], 9) != []
        await store.register(worker("w2"))
        await commit(store, row(9, 2, writer="w2", epoch=1, change=Stall("no code")))
        assert await store.claim_runs("w2", ["order"], 9) == []
        await store.unstall(["order"])
        assert [c.key for c in await store.claim_runs("w2", ["order"], 9)] == [key(9)]
        await store.close()

    asyncio.run(main())


def test_what_another_process_makes_due_and_what_comes_due_by_itself_is_found(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = SqliteStore(tmp_path / "runs.db", synchronous="normal", unsafe=True)
        other = SqliteStore(tmp_path / "runs.db", synchronous="normal", unsafe=True)
        await store.open()
        await other.open()
        await store.register(worker("w1"))
        soon = store.now() + 1_000_000
        await start(store, new(1, ready_at=soon))
        assert await store.claim_runs("w1", ["order"], 9) == []
        await start(other, new(2, ready_at=soon + 10**12))
        assert await store.claim_runs("w1", ["order"], 9) == []
        await other.post([message(2, "a")])
        assert [c.key for c in await store.claim_runs("w1", ["order"], 9)] == [key(2)]
        assert await store.claim_runs("w1", ["order"], 9) == []
        now = store.now
        store.now = lambda: now() + 1_000_001  # type: ignore[method-assign]
        assert [c.key for c in await store.claim_runs("w1", ["order"], 9)] == [key(1)]
        await store.close()
        await other.close()

    asyncio.run(main())
