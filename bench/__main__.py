"""The command line of the measurements: `python -m bench --help`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from bench import (
    crash,
    flows,
    idle,
    imports,
    long_flows,
    long_runs,
    naps,
    sagas,
    signals,
    starts,
    throughput,
)
from bench.figures import Figure
from bench.places import Place, places
from bench.profiling import profile
from bench.report import as_json, table
from bench.scale import FULL, QUICK, Scale

Measure = Callable[[Sequence[Place], Scale], Coroutine[Any, Any, list[Figure]]]

_MEASURES: dict[str, Measure] = {
    "w1": lambda where, scale: throughput.measure(throughput.w1(), where, (1, 64), scale),
    "w1r": naps.measure,
    "w1f": flows.measure_w1f,
    "w2": flows.measure_wide,
    "w3": starts.measure,
    "w7": idle.measure,
    "w8": lambda where, scale: throughput.measure(throughput.w8(), where, (64,), scale),
    "w9": lambda where, scale: throughput.measure(sagas.w9(), where, (1, 64), scale),
    "saga": sagas.measure_sagas,
    "w10": long_runs.measure,
    "w10f": long_flows.measure,
}
WORKLOADS = {
    "w1": "ten trivial steps in sequence, 1 and 64 runs at a time",
    "w1f": "as w1, through the workflow door; ten steps and fifty",
    "w1r": "as w1, steps that take a random 0-20 ms, 64 and 512 runs at a time",
    "w2": "one workflow, 1,000 steps at the same time; memory of a waiting step and workflow",
    "w3": "start 2,000 one-step runs and wait for all",
    "w4": "a signal until the run has gone on and ended, same process and another",
    "w5": "kill -9 among 200 runs of ten 20 ms steps, restart",
    "w6": "import time, what it brings along, hello world",
    "w7": "an idle worker, with and without 10,000 parked runs; memory of waiting runs",
    "w8": "ten nodes that read one another, 64 runs at a time",
    "w9": "a saga of five steps that fails at the last and undoes four",
    "saga": "sagas of 5 and 50 bare steps, 1 and 64 runs at a time",
    "w10": "one run of 10,000 steps: does the cost grow; loading it",
    "w10f": "as w10, a workflow; its replay",
}


def parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    listed = "\n".join(f"  {name}  {text}" for name, text in WORKLOADS.items())
    result = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures perdure beside what bounds it, both in the same run.",
        epilog=f"workloads:\n{listed}\n\nMore: python -m bench.bytecodes, "
        "bench.kernel, bench.expr, bench.ceilings",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("workload", nargs="*", help="which ones (default: all)")
    result.add_argument("--store", choices=("memory", "sqlite", "all"), default="all")
    result.add_argument("--quick", action="store_true", help="a fifth of the size, 3 repeats")
    result.add_argument("--profile", action="store_true", help="profile the first workload named")
    result.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    return result


def main(args: list[str] | None = None) -> int:
    """0 when everything was measured, budgets met or not; they are for people to judge."""
    options = parser().parse_args(args)
    names = [name.lower() for name in options.workload] or list(WORKLOADS)
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        print(f"no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}")
        return 2
    logging.disable(logging.WARNING)  # W5 kills a worker on purpose
    scale = QUICK if options.quick else FULL
    if options.profile:
        profile(names[0], places(options.store)[0], scale)
        return 0
    load = os.getloadavg()[0]
    figures: list[Figure] = []
    for name in names:
        print(f"{name}: {WORKLOADS[name]} ...", file=sys.stderr, flush=True)
        figures += measure(name, options.store, scale)
    print(table(figures))
    print(f"load when it began: {load:.1f} on {os.cpu_count()} processors; medians of repeats")
    if options.json is not None:
        options.json.write_bytes(as_json(figures))
    return 0


def measure(name: str, store: str, scale: Scale) -> list[Figure]:
    """The figures of one workload."""
    where = places(store)
    if name == "w4":
        return signals.measure(where, scale)
    if name == "w5":
        return crash.measure(where, scale)
    if name == "w6":
        return imports.measure(scale)
    return asyncio.run(_MEASURES[name](where, scale))


if __name__ == "__main__":
    sys.exit(main())
