"""W10: one run of 10,000 steps, through the graph door. Does the 10,000th cost what the 100th did?

And replay: what loading costs a step, as the difference between telling a parked run of 10,000
steps something and telling one of ten. Not on SQLite with `sync=full`: the disk's time a commit
would hide what grows.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.chains import line, node, nothing, plain
from bench.figures import Figure, compare, seconds
from bench.places import MEMORY, Place
from bench.scale import Scale
from bench.waiting import SIGNAL, all_parked, parking, waiting
from perdure import Engine, Graph, step
from perdure.feed import WaitEnded

STEPS, SHORT = 10_000, 100
#: Graphs have no more nodes; some are the waits.
REPLAYED, FEW = 9_900, 10
FLAT, REPLAY = 1.10, 15.0

_marks: list[float] = []


@step(name="mark")
async def mark() -> None:
    """Notes the processor's time."""
    _marks.append(time.process_time())


async def measure(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W10 where a commit does not wait for the disk."""
    figures = []
    steps = max(SHORT * 2, int(STEPS * scale.whole))
    long, short = plain(steps), plain(SHORT)
    marked = line("marked", [node(at, "mark", None) for at in range(steps)])
    replayed = waiting(max(50, int(REPLAYED * scale.whole)), scale.repeats)
    few = waiting(FEW, scale.repeats)
    for place in places:
        if place.sync == "full":
            continue
        figures.append(await _beside_short(place, long, short, steps, scale))
        if place is MEMORY:
            figures.append(await _within(place, marked, steps, scale))
        figures.append(await _replay(place, replayed, few, len(replayed.plan.nodes)))
    return figures


async def _beside_short(
    place: Place, long: Graph, short: Graph, steps: int, scale: Scale
) -> Figure:
    """µs a step of one long run, beside as many steps in runs of a hundred."""
    costs, ceilings = await compare(
        scale.repeats,
        lambda: cost(place, long, steps, 1),
        lambda: cost(place, short, SHORT, steps // SHORT),
    )
    return flat("W10", f"{place.name}, {steps:,} steps", costs, ceilings, _SHORTER)


async def cost(place: Place, graph: Graph, steps: int, runs: int) -> float:
    """µs a step of so many runs, one after another."""
    with tempfile.TemporaryDirectory() as folder:
        async with Engine(place.url(Path(folder)), [graph, nothing]) as engine:

            async def all_runs() -> None:
                for _ in range(runs):
                    await engine.run(graph)

            took = await seconds(all_runs(), busy=place is MEMORY)
    return took / (steps * runs) * 1e6


async def _within(place: Place, graph: Graph, steps: int, scale: Scale) -> Figure:
    """µs of each of the last thousand steps beside those after the first hundred."""
    last, first = [], []
    tenth = max(1, steps // 10)
    for _ in range(scale.repeats):
        _marks.clear()
        async with Engine("memory:", [graph, mark]) as engine:
            gc.collect()
            await engine.run(graph)
        first.append((_marks[SHORT // 2 + tenth - 1] - _marks[SHORT // 2 - 1]) / tenth * 1e6)
        last.append((_marks[-1] - _marks[-1 - tenth]) / tenth * 1e6)
    return flat("W10", f"{place.name}, the last {tenth:,} of {steps:,}", last, first, _EARLIER)


def flat(
    workload: str, case: str, costs: list[float], ceilings: list[float], ceiling_is: str
) -> Figure:
    """What a step costs beside what it should not exceed by more than a tenth."""
    ratio = median(cost / least for cost, least in zip(costs, ceilings, strict=True))
    return Figure(
        workload, case, median(costs), "µs a step", median(ceilings), ceiling_is, ratio,
        f"<= {FLAT:.0%} of ceiling", ratio <= FLAT, spread=(min(costs), max(costs)),
    )  # fmt: skip


async def _replay(place: Place, long: Graph, few: Graph, nodes: int) -> Figure:
    with tempfile.TemporaryDirectory() as folder:
        async with parking(place.url(Path(folder)), [long, few]) as engine:
            pairs = await resumed(engine, long, few)
    more = len(long.plan.nodes) - len(few.plan.nodes)
    costs = [(slow - quick) / more * 1e6 for slow, quick in pairs]
    value = median(costs)
    return Figure(
        "W10", f"{place.name}, {nodes:,} steps: loading", value, "µs a step",
        budget=f"<= {REPLAY:g} µs a step", met=value <= REPLAY, spread=(min(costs), max(costs)),
    )  # fmt: skip


async def resumed(engine: Engine, long: Graph, few: Graph) -> list[tuple[float, float]]:
    """Seconds from signalling each of two parked runs until its wait is over, for each wait."""
    runs = [await engine.start(long), await engine.start(few)]
    over: asyncio.Queue[float] = asyncio.Queue()

    @engine.listen(WaitEnded)
    def ended(event: WaitEnded) -> None:
        over.put_nowait(time.perf_counter())

    pairs = []
    for _ in [each for each in few.plan.nodes.values() if each.type != "TASK"]:
        took = []
        for run in runs:
            await all_parked(engine)
            gc.collect()
            began = time.perf_counter()
            await run.signal(SIGNAL)
            took.append(await over.get() - began)
        pairs.append((took[0], took[1]))
    return pairs


_SHORTER = "W10: as many steps in runs of a hundred, one after another"
_EARLIER = "W10: the steps after the first fifty"
