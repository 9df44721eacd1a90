"""W1 and W8: chains of ten trivial steps, one run and 64 runs at a time.

W1 shows what a step costs, W8 what a node costs whose input is a template.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.ceilings_memory import kept
from bench.chains import NODES, add_one, nothing, plain, reading
from bench.figures import Budget, Figure, compare, rated, seconds
from bench.places import MEMORY, Place, row_sizes
from perdure import Engine, Graph, Step


class Chain(msgspec.Struct, frozen=True):
    """A workload: its graph, its step, its input."""

    name: str
    graph: Graph
    step: Step[..., Any]
    given: Any = None


class Load(msgspec.Struct, frozen=True):
    """So many runs in all, so many of them at a time."""

    runs: int
    at_a_time: int


async def drive(engine: Engine, chain: Chain, load: Load) -> None:
    """Start runs and wait for their results, as many at a time as the load says."""
    numbers: Iterator[int] = iter(range(load.runs))

    async def one_after_another() -> None:
        for _ in numbers:
            run = await engine.start(chain.graph, chain.given)
            await run.result()

    async with asyncio.TaskGroup() as group:
        for _ in range(load.at_a_time):
            group.create_task(one_after_another())


async def rate(place: Place, chain: Chain, load: Load) -> float:
    """Nodes a second on a fresh store."""
    with tempfile.TemporaryDirectory() as folder:
        url = place.url(Path(folder))
        async with Engine(url, [chain.graph, chain.step]) as engine:
            await drive(engine, chain, Load(load.at_a_time, load.at_a_time))
            took = await seconds(drive(engine, chain, load))
    return load.runs * NODES / took


def w1() -> Chain:
    """Ten steps without input or output."""
    return Chain("W1", plain(), nothing)


def w8() -> Chain:
    """Ten nodes, each reading the one before."""
    return Chain("W8", reading(), add_one, {"n": 0})
