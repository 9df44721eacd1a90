"""What a node costs in the kernel alone: µs per node of a chain, events prepared beforehand.

    python bench/kernel.py [--nodes 10] [--seconds 2] [--profile]

Two chains: specs that are constant, and specs with a template that reads the node before. Each
number is the best of many runs, machine and snapshot made anew for each (outside the time taken).
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import time
from collections.abc import Callable
from functools import partial
from itertools import count, pairwise

from msgspec import Raw

from perdure.codec.values import JsonCodec
from perdure.graph import Graph
from perdure.kernel.actions import Transition
from perdure.kernel.events import Event, NodeCompleted, RunStarted
from perdure.kernel.fold import fold_transition
from perdure.kernel.machine import GraphMachine
from perdure.kernel.plan import GraphPlan
from perdure.kernel.protocol import Deps
from perdure.kernel.run import Run

OUTPUT = Raw(b'{"total":125,"items":[1,2,3],"name":"ann"}')


def chain(nodes: int, reading: bool) -> GraphPlan:
    names = [f"n{i}" for i in range(nodes)]
    specs = [{"step": "work", "input": {"a": 1, "b": "text"}} for _ in names]
    for before, spec in zip(names, specs[1:], strict=False):
        if reading:
            spec["input"] = {"total": f"{{{{tasks.{before}.output.total}}}}"}
    return Graph.load({
        "name": "chain",
        "nodes": [
            {"id": n, "type": "TASK", "spec": spec} for n, spec in zip(names, specs, strict=True)
        ],
        "edges": [{"from": a, "to": b} for a, b in pairwise(names)],
    }).plan  # fmt: skip


def deps() -> Deps:
    ids = count()
    return Deps(lambda: 1_735_689_600_000_000, lambda: f"t{next(ids)}", lambda: 0.5, JsonCodec())


def run_once(plan: GraphPlan, nodes: int) -> tuple[float, list[Transition]]:
    """Seconds for one run from start to end, and its journal."""
    machine = GraphMachine(plan, Run(), deps())
    events: list[Event] = [RunStarted("r", input=Raw(b"{}"))]
    events += [NodeCompleted(f"t{i}", f"n{i}", 0, OUTPUT) for i in range(nodes)]
    apply, journal = machine.apply, []
    begin = time.perf_counter()
    for event in events:
        try:
            next(apply(event))
        except StopIteration as stop:
            journal.append(stop.value)
    taken = time.perf_counter() - begin
    assert machine.run.status == "completed", machine.run
    return taken, journal


def fold_once(journal: list[Transition]) -> float:
    run = Run()
    begin = time.perf_counter()
    for transition in journal:
        fold_transition(run, transition)
    return time.perf_counter() - begin


def _seconds(plan: GraphPlan, nodes: int) -> float:
    return run_once(plan, nodes)[0]


def _often(plan: GraphPlan, nodes: int) -> None:
    for _ in range(2000):
        run_once(plan, nodes)


def best(measure: Callable[[], float], seconds: float) -> float:
    end = time.perf_counter() + seconds
    found = measure()
    while time.perf_counter() < end:
        found = min(found, measure())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--profile", action="store_true", help="cProfile instead of times")
    options = parser.parse_args()
    nodes = options.nodes
    for label, reading in (("constant specs", False), ("a template reading the node before", True)):
        plan = chain(nodes, reading)
        _, journal = run_once(plan, nodes)
        if options.profile:
            profile = cProfile.Profile()
            profile.runcall(_often, plan, nodes)
            pstats.Stats(profile).sort_stats("tottime").print_stats(18)
            continue
        gc.disable()
        apply = best(partial(_seconds, plan, nodes), options.seconds) * 1e6 / nodes
        folded = best(partial(fold_once, journal), options.seconds / 4) * 1e6 / nodes
        gc.enable()
        print(f"{label}: {apply:.2f} µs a node applied; {folded:.2f} µs a node folded at loading")


if __name__ == "__main__":
    main()
