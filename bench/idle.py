"""W7: what a worker costs that has nothing to do, and runs that only wait.

CPU and statements of an idle worker, on an empty file and with 10,000 parked runs in it; bytes
that a run costs which waits in memory, and one that is parked.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.chains import nothing
from bench.figures import Figure
from bench.places import MEMORY, Place
from bench.scale import Scale
from bench.statements import counted
from bench.waiting import all_at_rest, all_parked, keeping, parking, start_all, waiting
from perdure import Engine, Graph
from perdure.model.definition import Definition

PARKED, LIVE = 10_000, 1_000
#: Parked runs come in so many waves, of which each has left memory before the next.
WAVES = 10
#: More than any batch the engine makes: so many go before those that are counted.
ROOM = 600
#: How long an idle worker is watched, in seconds, after it has settled.
WATCHED, SETTLE = 6.0, 1.0
MOST_CPU, MOST_QUERIES, MOST_BYTES = 1.0, 2.0, 6 * 1024
#: What counts as no memory: less than a pointer for each run.
NOTHING = 8.0


class Idle(msgspec.Struct, frozen=True):
    """An idle worker's second: `cpu` in %, `queries` and `looks` (at the data version)."""

    cpu: float
    queries: float
    looks: float


async def measure(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W7: memory of live runs everywhere; the rest on files, where runs can be parked."""
    figures = []
    graph = waiting(steps=1)
    live, parked = max(10, int(LIVE * scale.whole)), max(20, int(PARKED * scale.whole))
    watched = max(0.2, WATCHED * scale.whole**0.5)
    for place in places:
        if place.sync == "normal":
            continue  # idle, there is nothing to sync
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            figures.append(_bytes(place, live, await live_bytes(place.url(folder), graph, live)))
            if place is MEMORY:
                continue
            empty = await idle(place.url(folder, "empty.db"), graph, watched)
            url = place.url(folder, "parked.db")
            left = await parked_bytes(url, graph, parked)
            full = await idle(url, graph, watched)
            figures += _idle(place, empty, None, "nothing to do")
            figures.append(
                Figure(
                    "W7", f"{place.name}, {parked:,} parked: memory", left, "bytes a run",
                    budget="~ 0", met=left <= NOTHING,
                )
            )  # fmt: skip
            figures += _idle(place, full, empty, f"{parked:,} parked")
    return figures


def _bytes(place: Place, runs: int, found: float) -> Figure:
    return Figure(
        "W7", f"{place.name}, {runs:,} waiting in memory", found, "bytes a run",
        budget=f"<= {MOST_BYTES:,}", met=found <= MOST_BYTES,
    )  # fmt: skip


def _idle(place: Place, here: Idle, empty: Idle | None, what: str) -> list[Figure]:
    cpu = Figure("W7", f"{place.name}, {what}: CPU", here.cpu, "%", budget=f"<= {MOST_CPU:g} %")
    cpu.met = here.cpu <= MOST_CPU
    queries = Figure("W7", f"{place.name}, {what}: store", here.queries, "queries a second")
    queries.budget, queries.met = f"<= {MOST_QUERIES:g} a second", here.queries <= MOST_QUERIES
    if empty is not None:
        for figure, before in ((cpu, empty.cpu), (queries, empty.queries)):
            figure.ceiling, figure.ceiling_is = before, "W7: the same worker on an empty file"
            figure.ratio = figure.value / before if before else None
    queries.note = f"beside them {here.looks:.1f} looks a second at the file's data version"
    return [cpu, queries]


async def idle(url: str, graph: Graph, seconds: float) -> Idle:
    """A worker with the usual settings, once it has settled."""
    with counted() as counts:
        async with Engine(url, [graph, nothing]):
            await asyncio.sleep(min(SETTLE, seconds))
            counts.clear()
            gc.collect()
            cpu, began = time.process_time(), time.perf_counter()
            await asyncio.sleep(seconds)
            spent, took = time.process_time() - cpu, time.perf_counter() - began
            found = counts.copy()
    return Idle(spent / took * 100, found["query"] / took, found["look"] / took)


async def live_bytes(url: str, graph: Definition[Any, Any], runs: int) -> float:
    """What a run in memory costs that waits for a signal, after one step."""
    with tracing():
        async with keeping(url, [graph]) as engine:
            await start_all(engine, graph, 1)
            await all_at_rest(engine)
            before = allocated()
            await start_all(engine, graph, runs, "more")
            await all_at_rest(engine)
            return (allocated() - before) / runs


async def parked_bytes(url: str, graph: Graph, runs: int) -> float:
    """What is left in memory of each run once it is parked, when they come in waves.

    The first waves are not counted: what is made once and kept, tables with room for a wave
    among it, is there then.
    """
    wave = max(1, runs // WAVES)
    with tracing():
        async with parking(url, [graph]) as engine:
            for name in ("first", "second"):
                await _wave(engine, graph, max(wave, ROOM), name)
            before = allocated()
            for at in range(WAVES):
                await _wave(engine, graph, wave, f"{at}")
            return (allocated() - before) / (wave * WAVES)


async def _wave(engine: Engine, graph: Graph, runs: int, name: str) -> None:
    await start_all(engine, graph, runs, name)
    await all_parked(engine)


@contextmanager
def tracing() -> Iterator[None]:
    """Memory is counted. From the start: what replaces something is no growth only if that was
    counted too."""
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def allocated() -> int:
    """Bytes in use that no collection frees."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
