"""W10f: a workflow of 10,000 steps in sequence. Does the cost grow, and what replay costs."""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from types import NoneType
from typing import Any

from bench.chains import nothing
from bench.figures import Figure, compare, seconds
from bench.long_runs import REPLAY, SHORT, STEPS, flat
from bench.places import MEMORY, Place
from bench.scale import Scale
from bench.waiting import AT_ONCE, all_parked
from perdure import Channel, Context, Engine, workflow
from perdure.feed import WaitEnded

FEW = 10
_more = Channel("more", NoneType)


@workflow(name="long", max_duration=None)
async def long(ctx: Context, steps: int) -> None:
    """So many steps, one after another."""
    for _ in range(steps):
        await nothing()


@workflow(name="long-waiting", max_duration=None)
async def long_waiting(ctx: Context, given: list[int]) -> None:
    """So many steps, then so many messages."""
    steps, waits = given
    for _ in range(steps):
        await nothing()
    for _ in range(waits):
        await ctx.receive(_more)


async def measure(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W10f where a commit does not wait for the disk."""
    steps = max(SHORT * 2, int(STEPS * scale.whole))
    figures = []
    for place in places:
        if place.sync == "full":
            continue
        costs, ceilings = await compare(
            scale.repeats,
            lambda place=place: cost(place, steps, 1),  # type: ignore[misc]
            lambda place=place: cost(place, SHORT, steps // SHORT),  # type: ignore[misc]
        )
        case = f"{place.name}, {steps:,} steps"
        figures.append(flat("W10f", case, costs, ceilings, _SHORTER))
        figures.append(await _replay(place, steps, scale.repeats))
    return figures


async def cost(place: Place, steps: int, runs: int) -> float:
    """µs a step of so many runs, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(place.url(Path(folder)), [long, nothing]) as engine:

            async def all_runs() -> None:
                for _ in range(runs):
                    await engine.run(long, steps)

            took = await seconds(all_runs(), busy=place is MEMORY)
    return took / (steps * runs) * 1e6


async def _replay(place: Place, steps: int, waits: int) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        url = place.url(Path(folder))
        parking: Any = {"poll": AT_ONCE, "park_after": AT_ONCE}
        async with Engine(url, [long_waiting, nothing], **parking) as engine:
            pairs = await replayed(engine, steps, waits)
    costs = [(slow - quick) / (steps - FEW) * 1e6 for slow, quick in pairs]
    value = median(costs)
    return Figure(
        "W10f", f"{place.name}, {steps:,} steps: loading and replay", value, "µs a step",
        budget=f"<= {REPLAY:g} µs a step", met=value <= REPLAY, spread=(min(costs), max(costs)),
    )  # fmt: skip


async def replayed(engine: Engine, steps: int, waits: int) -> list[tuple[float, float]]:
    """Seconds from telling each of two parked runs something until it is heard, for each wait."""
    runs = [
        await engine.start(long_waiting, [steps, waits]),
        await engine.start(long_waiting, [FEW, waits]),
    ]
    over: asyncio.Queue[float] = asyncio.Queue()

    @engine.listen(WaitEnded)
    def ended(event: WaitEnded) -> None:
        over.put_nowait(time.perf_counter())

    pairs = []
    for _ in range(waits):
        took = []
        for run in runs:
            await all_parked(engine)
            gc.collect()
            began = time.perf_counter()
            await run.signal(_more, None)
            took.append(await over.get() - began)
        pairs.append((took[0], took[1]))
    return pairs


_SHORTER = "W10f: as many steps in runs of a hundred, one after another"
