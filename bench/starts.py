"""W3: start 2,000 runs of one step and wait for all of them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.ceilings_memory import kept
from bench.ceilings_starts import grouped_starts
from bench.chains import nothing, plain
from bench.figures import Budget, Figure, beside_sketch, compare, rated, seconds
from bench.places import MEMORY, Place, row_size
from bench.scale import Scale
from bench.sketch import rate as sketch
from perdure import Engine, Graph
from perdure.model.definition import Definition

RUNS = 2_000
BUDGET = Budget(share=0.4, rate=10_000, sketch=25_000)


async def rate(place: Place, graph: Graph, runs: int) -> float:
    """Runs a second, from the first start to the last result."""
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(place.url(Path(folder)), [graph, nothing]) as engine:
            await start_all(engine, graph, 10)
            took = await seconds(start_all(engine, graph, runs), busy=place is MEMORY)
    return runs / took


async def start_all(engine: Engine, graph: Definition[None, Any], runs: int) -> None:
    """Start so many runs at the same moment, and wait for their results."""

    async def one() -> None:
        run = await engine.start(graph)
        await run.result()

    await asyncio.gather(*(one() for _ in range(runs)))


async def measure(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W3 on every place."""
    graph = plain(1)
    body = await row_size(graph, [nothing], None)
    runs = max(2, int(RUNS * scale.whole))
    figures = []
    for place in places:
        sketches: list[float] = []

        async def ceiling(place: Place = place, sketches: list[float] = sketches) -> float:
            if place.sync is None:
                return await kept(nothing.fn, runs, 1)
            sketches.append(await sketch(place.sync, body, nothing.fn, 1, runs, runs))
            return grouped_starts(runs, place.sync, body)

        async def run(place: Place = place) -> float:
            return await rate(place, graph, runs)

        rates, ceilings = await compare(scale.repeats, run, ceiling)
        text = _CEILINGS[place.sync is None]
        case = f"{place.name}, {runs:,} at once"
        figure = rated("W3", case, "run", rates, ceilings, text, BUDGET)
        if sketches:
            beside_sketch(figure, BUDGET, rates, sketches)
        figures.append(figure)
    return figures


_CEILINGS = {
    True: "memory: the bare coroutine awaited, its outcome encoded and put in a dict",
    False: "W3 on SQLite: bare inserts of a run row and two journal rows, 64 runs a commit",
}
