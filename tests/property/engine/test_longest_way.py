"""A run that nothing disturbs takes as long as its longest way: what may begin at the same time
does, whoever makes the attempts and whether they wait or not."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from perdure.flow.step import step
from tests.virtual.engines import engine_on, graph, node, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

GRAPHS = 150
#: Seconds that a step waits; most often none, so that one attempt follows another in one task.
WAITS = [0, 0, 0, 0.5, 1, 3]
#: What a late store's answers take of all, at most, in seconds.
SLACK = 0.1


@step
async def work(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)


def stages(random: Random) -> list[list[float]]:
    """One step after another, or several at a time: how long each waits."""
    wide = [random.choice([1, 1, 2, 3, 5]) for _ in range(random.randint(2, 7))]
    return [[random.choice(WAITS) for _ in range(width)] for width in wide]


def drawn(number: int, waits: list[list[float]]) -> Any:
    """The graph of these stages: each begins when all of the one before has ended."""
    nodes: list[dict[str, Any]] = []
    edges: list[str] = []
    last = ""
    for at, stage in enumerate(waits):
        names = [f"s{at}_{i}" for i in range(len(stage))]
        nodes += [
            task(name, "work", {"seconds": seconds})
            for name, seconds in zip(names, stage, strict=True)
        ]
        first = end = names[0]
        if len(stage) > 1:
            first, end = f"fork{at}", f"join{at}"
            nodes += [node(first, "FORK"), node(end, "JOIN")]
            edges += [f"{first} {name}" for name in names] + [f"{name} {end}" for name in names]
        if last:
            edges.append(f"{last} {first}")
        last = end
    return graph(f"g{number}", nodes, edges)


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_run_takes_as_long_as_its_longest_way(kind: type[VirtualStore]) -> None:
    random = Random(35)
    shapes = [stages(random) for _ in range(GRAPHS)]
    graphs = [drawn(number, waits) for number, waits in enumerate(shapes)]

    async def main() -> None:
        async with engine_on(kind(), *graphs, work) as engine:
            for one, waits in zip(graphs, shapes, strict=True):
                began = asyncio.get_running_loop().time()
                await engine.run(one)
                took = asyncio.get_running_loop().time() - began
                longest = sum(max(stage) for stage in waits)
                assert longest - 0.01 <= took <= longest + SLACK, waits

    run(main())
