"""The stores that workloads run on, and how large the rows are that they write there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec

from perdure import Engine, Run, RunFailed, Step
from perdure.model.definition import Definition
from perdure.stores.memory import MemoryStore


class Place(msgspec.Struct, frozen=True):
    """A store: `sync` is None for memory, else SQLite's `full` or `normal`."""

    name: str
    sync: str | None = None

    def url(self, folder: Path, file: str = "runs.db") -> str:
        """A store that holds nothing yet."""
        if self.sync is None:
            return "memory:"
        return f"sqlite:///{folder / file}?sync={self.sync}"


MEMORY = Place("memory")
SQLITE = (Place("sqlite full", "full"), Place("sqlite normal", "normal"))


def places(store: str) -> tuple[Place, ...]:
    """The places that `--store` names."""
    return {"memory": (MEMORY,), "sqlite": SQLITE, "all": (MEMORY, *SQLITE)}[store]


async def row_size(
    graph: Definition[Any, Any],
    steps: Sequence[Step[..., Any]],
    given: object,
    *,
    fails: bool = False,
) -> int:
    """The mean size in bytes of the journal rows that a run of this graph writes."""
    store = MemoryStore()
    async with Engine(store, [graph, *steps]) as engine:
        run = await engine.start(graph, given)
        await ended(run, fails=fails)
        row = await store.describe(graph.name, run.id)
        loaded = await store.load(row.key)
    return round(mean(len(row.body) for row in loaded.journal))


async def ended(run: Run[Any], *, fails: bool) -> None:
    """Wait for the run's end, which must be the one that is meant. Raises RunFailed where it fails
    otherwise, RuntimeError where it was to fail and did not."""
    try:
        await run.result()
    except RunFailed:
        if not fails:
            raise
    else:
        if fails:
            raise RuntimeError(f"{run.id} was to fail, and did not")
