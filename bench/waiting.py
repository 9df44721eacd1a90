"""Runs that wait for a signal: the graphs, the ways into and out of memory, the wait for both.

Looks into the engine's own list of live runs: whether a run is in memory is nobody's business but
a measurement's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from bench.chains import nothing
from perdure import Engine, Graph
from perdure.model.definition import Definition
from perdure.stores.port import Store

SIGNAL = "go"
#: An engine that never parks, and one that does so as soon as it can, in seconds.
NEVER, AT_ONCE = 3_600.0, 0.05
_PATIENCE = 120.0


def waiting(steps: int = 0, waits: int = 1) -> Graph:
    """So many steps, then so many waits for a signal, one after another."""
    nodes = [
        {"id": f"n{at}", "type": "TASK", "spec": {"step": "nothing"}} for at in range(steps)
    ] + [
        {"id": f"w{at}", "type": "WAIT_FOR_SIGNAL", "spec": {"signal": SIGNAL}}
        for at in range(waits)
    ]
    edges = [{"from": a["id"], "to": b["id"]} for a, b in pairwise(nodes)]
    return Graph.load({"name": f"waiting-{steps}-{waits}", "nodes": nodes, "edges": edges})


def parking(store: str | Store, graphs: list[Graph]) -> Engine:
    """An engine that lets go what waits as soon as it can."""
    return Engine(store, [*graphs, nothing], poll=AT_ONCE, park_after=AT_ONCE)


def keeping(store: str | Store, graphs: list[Definition[Any, Any]]) -> Engine:
    """An engine that keeps in memory what waits."""
    return Engine(store, [*graphs, nothing], park_after=NEVER)


async def start_all(
    engine: Engine, graph: Definition[Any, Any], runs: int, name: str = "r"
) -> list[str]:
    """Start so many runs, a hundred at the same moment; their ids."""
    ids = [f"{name}-{at}" for at in range(runs)]
    for some in range(0, runs, 100):
        await asyncio.gather(*(engine.start(graph, id=id) for id in ids[some : some + 100]))
    return ids


async def all_at_rest(engine: Engine) -> None:
    """Until every run in memory waits for something from outside."""
    await until(lambda: all(live.at_rest for live in engine._shell.live.values()))


async def all_parked(engine: Engine) -> None:
    """Until no run is in memory."""
    await until(lambda: not engine._shell.live)


async def until(holds: Callable[[], bool]) -> None:
    """Until this is so. Raises RuntimeError when it takes very long."""
    deadline = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("the runs did not come to rest")
        await asyncio.sleep(0.005)
