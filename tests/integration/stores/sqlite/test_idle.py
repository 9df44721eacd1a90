"""An idle worker asks a file next to nothing, and still hears of everything."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from bench.statements import counted
from perdure.conformance.rows import new, start, worker
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
