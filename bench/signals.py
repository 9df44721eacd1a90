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
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from statistics import median

from bench.ceilings import commits
from bench.figures import Figure
from bench.places import Place
from bench.scale import Scale
from bench.waiting import SIGNAL, all_at_rest, all_parked, keeping, parking, start_all, waiting
from perdure import Client

SIGNALS = 40
#: Before each signal and before its ceiling, in seconds.
REST = 0.01
#: Signals sent to another process, and the longest pause before each, in seconds: long enough
#: that the other process has stopped looking often.
FAR_SIGNALS, PAUSE = 16, 0.5
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
    times, ceilings = [], []
    for _ in range(scale.repeats):
        pairs = await in_one_process(place, signals, parked)
        times.append(median(time for time, _ in pairs))
        ceilings.append(median(least for _, least in pairs))
    where = "parked" if parked else "in memory"
    figure = Figure("W4", f"{place.name}, {where}", median(times), "ms")
    figure.spread = (min(times), max(times))
    least = median(ceilings)
    if least:
        figure.ceiling, figure.ceiling_is = (
            least,
            "W4: two bare commits of one row, in turn with it",
        )
        figure.ratio = median(time / most for time, most in zip(times, ceilings, strict=True))
    if not parked:
        figure.budget = f"<= {COMMITS} commits + {OVER_MS:g} ms"
        figure.met = figure.value <= least + OVER_MS
    return figure


async def in_one_process(place: Place, signals: int, parked: bool) -> list[tuple[float, float]]:
    """ms of each signal, from sending it to having the run's result; and of the commits that are
    its ceiling, each at the same pace and just before it."""
    graph, pairs = waiting(), []
    with tempfile.TemporaryDirectory() as folder, _ceiling(place) as ceiling:
        url = place.url(Path(folder))
        async with (parking if parked else keeping)(url, [graph]) as engine:
            ids = await start_all(engine, graph, signals)
            await all_parked(engine) if parked else await all_at_rest(engine)
            for id in ids:
                run = engine.get(graph, id)
                ended = asyncio.ensure_future(run.result())
                await asyncio.sleep(REST)  # whoever waits for a parked run has looked for it once
                least = ceiling(COMMITS)
                await asyncio.sleep(REST)
                begin = time.perf_counter()
                await run.signal(SIGNAL)
                await ended
                pairs.append(((time.perf_counter() - begin) * 1e3, least * 1e3))
    return pairs


def _ceiling(place: Place) -> AbstractContextManager[Callable[[int], float]]:
    if place.sync is None:
        return nullcontext(lambda commits: 0.0)  # in memory a commit costs nothing
    return commits(place.sync)


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
            id = f"r-{at}"
            sent[id] = time.monotonic_ns()
            await client.get(graph, id).signal(SIGNAL)
    return sent
