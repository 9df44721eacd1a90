"""W4: from a signal being sent to the run's end being known, one signal after another.

In the same process beside the two commits that cannot be left out (the message, the row that ends
the run), and from another process that shares the SQLite file. Both for runs in memory and for
parked ones.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.ceilings import single_commit
from bench.figures import Figure
from bench.places import Place
from bench.scale import Scale
from bench.waiting import SIGNAL, all_at_rest, all_parked, keeping, parking, start_all, waiting
from perdure import Client, Engine, Graph

SIGNALS = 200
#: Signals sent to another process, and the longest pause before each, in seconds: long enough
#: that the other process has stopped looking often.
FAR_SIGNALS, PAUSE = 25, 0.6
COMMITS, OVER_MS, FAR_MS = 2, 1.0, 60.0
_PATIENCE = 60.0


def measure(places: Sequence[Place], scale: Scale) -> list[Figure]:
    """W4 on every place."""
    figures = []
    near, far = max(2, int(SIGNALS * scale.whole)), max(2, int(FAR_SIGNALS * scale.whole**0.5))
    for place in places:
        for parked in (False, True):
            figures.append(asyncio.run(_near(place, near, parked, scale)))
        if place.sync is not None:
            for parked in (False, True):
                figures.append(_far(place, far, parked))
    return figures


async def _near(place: Place, signals: int, parked: bool, scale: Scale) -> Figure:
    times, commits = [], []
    for _ in range(scale.repeats):
        commits.append(
            0.0 if place.sync is None else 1e3 / single_commit(scale.seconds, place.sync)
        )
        times.append(median(await in_one_process(place, signals, parked)))
    least = COMMITS * median(commits)
    figure = Figure(
        "W4", f"{place.name}, {'parked' if parked else 'in memory'}", median(times), "ms"
    )
    figure.spread = (min(times), max(times))
    if least:
        figure.ceiling, figure.ceiling_is = least, "W4: two bare commits of one row"
        figure.ratio = median(t / (COMMITS * c) for t, c in zip(times, commits, strict=True))
    if not parked:
        figure.budget = "<= 2 commits + 1 ms"
        figure.met = figure.value <= least + OVER_MS
    return figure


async def in_one_process(place: Place, signals: int, parked: bool) -> list[float]:
    """ms of each signal, from sending it to having the run's result."""
    graph = waiting()
    with tempfile.TemporaryDirectory() as folder:
        url = place.url(Path(folder))
        async with (parking if parked else keeping)(url, [graph]) as engine:
            ids = await start_all(engine, graph, signals)
            await all_parked(engine) if parked else await all_at_rest(engine)
            return [await _one(engine, graph, id) for id in ids]


async def _one(engine: Engine, graph: Graph, id: str) -> float:
    run = engine.get(graph, id)
    ended = asyncio.ensure_future(run.result())
    await asyncio.sleep(0.01)  # whoever waits for a parked run has looked for it once
    begin = time.perf_counter()
    await run.signal(SIGNAL)
    await ended
    return (time.perf_counter() - begin) * 1e3


def _far(place: Place, signals: int, parked: bool) -> Figure:
    times = across_processes(place, signals, parked)
    value = median(times)
    return Figure(
        "W4", f"{place.name}, {'parked' if parked else 'in memory'}, another process", value, "ms",
        budget=f"<= {FAR_MS:g} ms", met=value <= FAR_MS, spread=(min(times), max(times)),
    )  # fmt: skip


def across_processes(place: Place, signals: int, parked: bool, pause: float = PAUSE) -> list[float]:
    """ms of each signal, from sending it here to the run's end over there; the clock is one for
    all processes of a machine."""
    with tempfile.TemporaryDirectory() as folder:
        url = place.url(Path(folder))
        command = [sys.executable, "-m", "bench.signal_worker", url, str(signals)]
        command.append("parked" if parked else "live")
        root = Path(__file__).resolve().parent.parent
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=root)
        try:
            assert worker.stdout is not None
            if worker.stdout.readline().strip() != b"waiting":
                raise RuntimeError("the worker did not start the runs")
            sent = asyncio.run(_send(url, signals, pause))
            out, _ = worker.communicate(timeout=_PATIENCE)
        finally:
            worker.kill()
            worker.wait()
    ended = {id: int(at) for id, at in (line.split() for line in out.decode().splitlines())}
    return [(ended[id] - at) / 1e6 for id, at in sent.items()]


async def _send(url: str, signals: int, pause: float) -> dict[str, int]:
    graph, sent = waiting(), {}
    async with Client(url) as client:
        for at in range(signals):
            await asyncio.sleep(random.uniform(pause / 2, pause))
            id = f"{graph.name}-{at}"
            sent[id] = time.monotonic_ns()
            await client.get(graph, id).signal(SIGNAL)
    return sent
