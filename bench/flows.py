"""The same through the workflow door: W1f ten steps in sequence, W2 a thousand at a time, W7f what
a waiting workflow and a waiting step cost in memory."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Final

from bench.ceilings_memory import kept
from bench.chains import NODES, nothing
from bench.figures import Budget, Figure, compare, rated, seconds
from bench.idle import MOST_BYTES, allocated, live_bytes, tracing
from bench.lengths import measure_lengths
from bench.places import MEMORY, SQLITE, Place
from bench.scale import Scale
from bench.throughput import Chain
from bench.waiting import NEVER, SIGNAL, until
from perdure import Context, Engine, Signal, step, workflow

#: Parallel steps of W2, and the most a waiting one may take, in bytes.
WIDTH: Final = 1_000
MOST_A_STEP: Final = 4 * 1024
WIDE = Budget(micros=50)
LIVE: Final = 1_000
#: Steps of the longer W1f.
LONGER: Final = 50

_go = Signal(SIGNAL, NoneType)
_open = asyncio.Event()
#: One for each step that has begun to stay.
_staying: list[None] = []


@workflow(name="line", max_duration=None)
async def line(ctx: Context, steps: int) -> None:
    """So many trivial steps, one after another."""
    for _ in range(steps):
        await nothing()


@workflow(name="wide", max_duration=None)
async def wide(ctx: Context, width: int) -> None:
    """So many trivial steps at the same time."""
    await asyncio.gather(*(nothing() for _ in range(width)))


@workflow(name="waiting-flow", max_duration=None)
async def waiting_flow(ctx: Context) -> None:
    """One step, then a signal."""
    await nothing()
    await ctx.wait(_go)


@step(name="stay")
async def stay() -> None:
    """Lasts until it is told."""
    _staying.append(None)
    await _open.wait()


@workflow(name="staying", max_duration=None)
async def staying(ctx: Context, width: int) -> None:
    """So many steps that wait at the same time."""
    await asyncio.gather(*(stay() for _ in range(width)))


def w1f(steps: int = NODES) -> Chain:
    """W1 through the workflow door."""
    name = "W1f" if steps == NODES else f"W1f of {steps}"
    return Chain(name, line, nothing, steps, nodes=steps)


async def measure_w1f(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """The figures of ten steps and of fifty."""
    return await measure_lengths("W1f", w1f(), w1f(LONGER), places, scale)


async def measure_wide(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W2 on every place, and what a step that waits costs in memory."""
    width = max(10, int(WIDTH * scale.whole))
    figures = []
    for place in places:

        async def run(place: Place = place) -> float:
            return await rate(place, width)

        rates, ceilings = await compare(scale.repeats, run, lambda: kept(nothing.fn, 1, width))
        case = f"{place.name}, {width:,} at once"
        figures.append(rated("W2", case, "step", rates, ceilings, _CEILING, WIDE))
    if MEMORY in places:
        found = await step_bytes(width)
        figures.append(_bytes("W2", "memory, a waiting step", found, MOST_A_STEP))
    runs = max(10, int(LIVE * scale.whole))
    for place in places:
        if place in SQLITE[1:]:
            continue  # as the one before
        with tempfile.TemporaryDirectory() as folder:
            found = await live_bytes(place.url(Path(folder)), waiting_flow, runs)
        case = f"{place.name}, {runs:,} waiting workflows"
        if place is MEMORY:  # which holds these too, also when they are parked
            case += " and their journals"
        figures.append(_bytes("W7f", case, found, MOST_BYTES))
    return figures


async def rate(place: Place, width: int) -> float:
    """Parallel steps a second of one run."""
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(place.url(Path(folder)), [wide, nothing]) as engine:
            await engine.run(wide, 10)
            took = await seconds(engine.run(wide, width), busy=place is MEMORY)
    return width / took


async def step_bytes(width: int) -> float:
    """What one of so many parallel steps costs in memory while it waits."""
    _open.clear()
    _staying.clear()
    with tracing():
        async with Engine("memory:", [staying, stay], park_after=NEVER) as engine:
            few = await engine.start(staying, 1)
            await _all_begun(1)
            before = allocated()
            run = await engine.start(staying, width)
            await _all_begun(width + 1)
            found = (allocated() - before) / width
            _open.set()
            await few.result()
            await run.result()
    return found


async def _all_begun(steps: int) -> None:
    await until(lambda: len(_staying) >= steps)


def _bytes(workload: str, case: str, found: float, most: int) -> Figure:
    return Figure(workload, case, found, "bytes each", budget=f"<= {most:,}", met=found <= most)


_CEILING: Final = "W2: the bare coroutine awaited, its outcome encoded and put in a dict"
