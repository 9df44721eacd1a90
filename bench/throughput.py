"""Chains of trivial steps, one run and 64 runs at a time; W1 and W8 have ten.

W1 shows what a step costs through the graph door, W8 what a node costs whose input is a template
that reads the node before.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench.ceilings import grouped_commit
from bench.ceilings_memory import kept, task_cost
from bench.chains import NODES, add_one, nothing, plain, reading
from bench.figures import Budget, Figure, beside_sketch, compare, rated, seconds
from bench.places import MEMORY, Place, ended, row_size
from bench.scale import Scale
from bench.sketch import rate as sketch
from perdure import Engine, Step
from perdure.model.definition import Definition

#: What the task of asyncio cost on the machine that the budgets in µs were written on.
TASK_THERE = 5.5
#: So many runs one after another fill SQLite's log once: from then on its file does not grow with
#: every commit, as that of the bare loop does not.
LOG_RUNS = 110


class Chain(msgspec.Struct, frozen=True):
    """A workload: its graph, workflow or saga, its step, its input, how many `nodes` a run of it
    carries out, and whether the run `fails`, as it is meant to."""

    name: str
    graph: Definition[Any, Any]
    step: Step[..., Any]
    given: Any = None
    nodes: int = NODES
    fails: bool = False


class Load(msgspec.Struct, frozen=True):
    """So many runs in all, so many of them at a time."""

    runs: int
    at_a_time: int


BUDGETS = {
    ("W1", "memory", 1): Budget(micros=16),
    ("W1", "memory", 64): Budget(micros=16),
    ("W1f", "memory", 1): Budget(micros=8),
    ("W1f", "memory", 64): Budget(micros=8),
    ("W1", "sqlite full", 1): Budget(share=0.6),
    ("W1", "sqlite full", 64): Budget(share=0.5, rate=30_000, sketch=58_000),
    ("W1f", "sqlite full", 64): Budget(share=0.5, rate=30_000, sketch=58_000),
    ("saga of 5", "memory", 1): Budget(micros=12),
    ("saga of 5", "memory", 64): Budget(micros=12),
    ("saga of 50", "memory", 1): Budget(micros=12),
    ("saga of 50", "memory", 64): Budget(micros=12),
    ("W8", "memory", 64): Budget(micros=16),
    ("W8", "sqlite full", 64): Budget(share=0.35, rate=15_000),
}


def w1() -> Chain:
    """Ten steps without input or output."""
    return Chain("W1", plain(), nothing)


def w8() -> Chain:
    """Ten nodes, each reading the one before."""
    return Chain("W8", reading(), add_one, {"n": 0})


async def drive(engine: Engine, chain: Chain, load: Load) -> None:
    """Start runs and wait for their results, as many at a time as the load says."""
    numbers: Iterator[int] = iter(range(load.runs))

    async def one_after_another() -> None:
        for _ in numbers:
            run = await engine.start(chain.graph, chain.given)
            await ended(run, fails=chain.fails)

    async with asyncio.TaskGroup() as group:
        for _ in range(load.at_a_time):
            group.create_task(one_after_another())


async def rate(place: Place, chain: Chain, load: Load, *, busy: bool = True) -> float:
    """Nodes a second on a fresh store, which has run a few before. `busy`: in memory it never
    waits (see figures.seconds)."""
    with tempfile.TemporaryDirectory() as folder:
        url = place.url(Path(folder))
        async with Engine(url, [chain.graph, chain.step]) as engine:
            warm = min(LOG_RUNS, 2 * load.runs) if place.sync and load.at_a_time == 1 else 1
            await drive(engine, chain, Load(max(warm, load.at_a_time), load.at_a_time))
            took = await seconds(drive(engine, chain, load), busy=busy and place is MEMORY)
    return load.runs * chain.nodes / took


async def measure(
    chain: Chain, places: Sequence[Place], loads: Sequence[int], scale: Scale
) -> list[Figure]:
    """The figures of a chain on every place, at every number of runs at a time."""
    figures = []
    body = await row_size(chain.graph, [chain.step], chain.given, fails=chain.fails)
    for place in places:
        for at_a_time in loads:
            runs = scale.runs(place, at_a_time) * NODES // chain.nodes
            load = Load(max(at_a_time, runs), at_a_time)
            figures.append(await _figure(chain, place, load, body, scale))
    return figures


async def _figure(chain: Chain, place: Place, load: Load, body: int, scale: Scale) -> Figure:
    tasks: list[float] = []
    sketches: list[float] = []
    budget = BUDGETS.get((chain.name, place.name, load.at_a_time))

    async def ceiling() -> float:
        if place.sync is None:
            tasks.append(await task_cost())
            return await kept(chain.step.fn, load.runs, chain.nodes)
        if budget is not None and budget.sketch is not None:
            sketches.append(
                await sketch(
                    place.sync, body, chain.step.fn, chain.nodes, load.runs, load.at_a_time
                )
            )
        return grouped_commit(load.at_a_time, scale.seconds, place.sync, body=body)

    rates, ceilings = await compare(scale.repeats, lambda: rate(place, chain, load), ceiling)
    runs = "1 run" if load.at_a_time == 1 else f"{load.at_a_time} runs"
    figure = rated(
        chain.name, f"{place.name}, {runs}", "node", rates, ceilings, _CEILINGS[place.sync is None],
        budget,
    )  # fmt: skip
    if sketches and budget is not None:
        beside_sketch(figure, budget, rates, sketches)
    if tasks:
        times = median(1e6 / rate / task for rate, task in zip(rates, tasks, strict=True))
        figure.note = _said_in_tasks(times, tasks)
        if budget is not None and budget.micros is not None:
            # What counts is the ratio, as for every budget: machines differ, and drift.
            figure.met = times * TASK_THERE <= budget.micros
    return figure


def _said_in_tasks(times: float, tasks: list[float]) -> str:
    """A figure in µs, for a machine where an asyncio task costs what it cost where the budget was
    written."""
    return (
        f"a node costs {times:.1f} times what creating and awaiting an asyncio task does "
        f"({median(tasks):.1f} µs here); where that is {TASK_THERE} µs, as on the machine of the "
        f"budget, {times * TASK_THERE:.1f} µs"
    )


_CEILINGS = {
    True: "memory: the bare coroutine awaited, its outcome encoded and put in a dict",
    False: "SQLite: a bare loop in a writer thread, rows as large as these runs' own, "
    "one row of each run at a time in a commit",
}
