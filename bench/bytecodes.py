"""How many bytecodes of Python a step costs, and a run beside its steps: python -m bench.bytecodes.

Times drift with the machine and its neighbours; this number hardly does. One bytecode is roughly
10-20 ns. One run is traced at a time, of FEW steps and of MANY: what a step more adds is the
step's, what is left of the shorter run is its own: start, end and result. Counted by function.

Left out: what C does (objects made, dicts, encoding, SQLite), so that fewer bytecodes for more
calls of C may be no gain; other threads, as SQLite's writer; asyncio's own loop, whose turns depend
on what else is due; and new ids, which cost more in each new millisecond, of which a traced run
takes many. Counts of two versions of Python do not compare.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any, Final
from unittest.mock import patch

import msgspec

from bench.chains import nothing, plain
from bench.long_flows import long
from bench.sagas import saga
from bench.throughput import Chain
from perdure import Engine
from perdure.engine.runs import runners, shared_runner

FEW, MANY = 20, 60
#: Runs before the one that is counted: caches fill, and the interpreter has seen the code.
BEFORE: Final = 3
#: What counts for less than so many in a run, or a step, is not printed.
LEAST: Final = 2
#: Files that are left out.
_LEFT_OUT: Final = frozenset(
    {"base_events.py", "events.py", "selectors.py", "selector_events.py", "_weakrefset.py"}
    | {"ids.py", "bytecodes.py"}
)
#: Whoever gives way to others after some milliseconds.
_GIVE_WAY: Final = (runners, shared_runner)

WORKLOADS: Final[dict[str, Callable[[int], Chain]]] = {
    "w1": lambda steps: Chain("W1", plain(steps), nothing),
    "w1f": lambda steps: Chain("W1f", long, nothing, steps),
    "saga": saga,
}


class Count(msgspec.Struct, frozen=True):
    """Bytecodes by function: of one more step, and of a run beside its steps."""

    step: dict[str, float]
    run: dict[str, float]


async def count(workload: Callable[[int], Chain], store: str) -> Count:
    """The bytecodes of a workload on a store, a URL."""
    few, many = await traced(workload(FEW), store), await traced(workload(MANY), store)
    step = {name: (many[name] - few[name]) / (MANY - FEW) for name in few | many}
    return Count(step, {name: few[name] - FEW * each for name, each in step.items()})


async def traced(chain: Chain, store: str) -> Counter[str]:
    """The bytecodes of one run, from its start to its result."""
    counts: Counter[str] = Counter()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            counts[_named(frame)] += 1
        return trace

    async with Engine(store, [chain.graph, chain.step]) as engine:
        for _ in range(BEFORE):
            await engine.run(chain.graph, chain.given)
        before = sys.gettrace()
        # It goes so slowly that the engine would give way to others all the time.
        slowly = [patch.object(module, "TURN_SECONDS", math.inf) for module in _GIVE_WAY]
        with slowly[0], slowly[1]:
            # What has begun already is not traced. Nor, from Python 3.12 on, is the first of what a
            # function does at its first call: so of two runs the second is counted.
            sys.settrace(trace)
            try:
                for _ in range(2):
                    counts.clear()
                    await asyncio.create_task(engine.run(chain.graph, chain.given))
            finally:
                sys.settrace(before)
    return Counter({name: n for name, n in counts.items() if name.split(":")[0] not in _LEFT_OUT})


def _named(frame: FrameType) -> str:
    code = frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}"


def listed(counts: dict[str, float]) -> str:
    """The functions that count, the most costly first."""
    found = sorted(counts.items(), key=lambda one: -one[1])
    return "\n".join(f"{n:8.1f}  {name}" for name, n in found if n >= LEAST)


def main(args: list[str] | None = None) -> int:
    """Print the counts of one workload."""
    parser = argparse.ArgumentParser(prog="python -m bench.bytecodes")
    parser.add_argument("workload", nargs="?", choices=WORKLOADS, default="w1")
    parser.add_argument("--store", default="memory:", metavar="URL", help="default: memory:")
    options = parser.parse_args(args)
    counted = asyncio.run(count(WORKLOADS[options.workload], options.store))
    print(f"{sum(counted.step.values()):,.0f} bytecodes a step\n{listed(counted.step)}\n")
    print(f"{sum(counted.run.values()):,.0f} bytecodes a run beside its steps")
    print(listed(counted.run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
