"""W1r: chains of ten steps that take a random 0-20 ms, 64 and 512 runs at a time.

Steps that really wait end at moments of their own: nothing makes the rows of many runs meet in a
commit but the load itself. The ceiling is the same naps in bare tasks, without an engine.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Final

from bench.chains import NODES, line, node
from bench.figures import Budget, Figure, beside_sketch, compare, rated
from bench.places import SQLITE, Place, row_size
from bench.scale import Scale
from bench.sketch import rate as sketch
from bench.throughput import Chain, Load, rate
from perdure import step

LONGEST: Final = 0.02
LOADS: Final = (64, 512)
#: How many runs each of those at a time makes, one after another.
ROUNDS: Final = 6
BUDGETS: Final = {64: Budget(share=0.75), 512: Budget(rate=15_000, sketch=27_000)}

_chance = random.Random(1)


@step(name="nap")
async def nap() -> None:
    """Takes a random time."""
    await asyncio.sleep(_chance.random() * LONGEST)


def napping() -> Chain:
    """Ten naps."""
    return Chain("W1r", line("napping", [node(at, "nap", None) for at in range(NODES)]), nap)


async def measure(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W1r where every row waits for the disk, and in memory."""
    chain = napping()
    return [
        await _figure(chain, place, at_a_time, scale)
        for place in places
        if place not in SQLITE[1:]  # it lies between the two
        for at_a_time in LOADS
    ]


async def _figure(chain: Chain, place: Place, at_a_time: int, scale: Scale) -> Figure:
    load = Load(max(at_a_time, int(at_a_time * ROUNDS * scale.whole)), at_a_time)
    budget = BUDGETS[at_a_time] if place.sync else None
    body = await row_size(chain.graph, [nap], None)
    sketches: list[float] = []

    async def ceiling() -> float:
        if budget is not None and budget.sketch is not None:
            made = await sketch(place.sync, body, nap.fn, NODES, load.runs, at_a_time)
            sketches.append(made)
        return await bare(load)

    rates, ceilings = await compare(
        scale.repeats, lambda: rate(place, chain, load, busy=False), ceiling
    )
    case = f"{place.name}, {at_a_time} runs"
    figure = rated("W1r", case, "step", rates, ceilings, _CEILING, budget)
    if sketches and budget is not None:
        beside_sketch(figure, budget, rates, sketches)
    return figure


async def bare(load: Load) -> float:
    """Naps a second without an engine: as many tasks, each with as many naps as its runs have."""
    numbers = iter(range(load.runs))

    async def one_after_another() -> None:
        for _ in numbers:
            for _ in range(NODES):
                await nap.fn()

    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(load.at_a_time):
            group.create_task(one_after_another())
    return load.runs * NODES / (time.perf_counter() - began)


_CEILING: Final = "W1r: the same naps in bare tasks, without an engine"
