"""The other process of W4: holds runs that wait for a signal, and says when each one ended.

python -m bench.signal_worker URL RUNS live|parked
"""

from __future__ import annotations

import asyncio
import sys
import time

from bench.waiting import all_at_rest, all_parked, keeping, parking, start_all, waiting
from perdure.feed import WorkflowFinished


async def main(url: str, runs: int, parked: bool) -> None:
    """Start the runs, say so, and wait until all have ended."""
    graph, over = waiting(), asyncio.Event()
    ends: dict[str, int] = {}
    if parked:
        async with parking(url, [graph]) as engine:
            await start_all(engine, graph, runs)
            await all_parked(engine)
    async with keeping(url, [graph]) as engine:

        @engine.listen(WorkflowFinished)
        def ended(event: WorkflowFinished) -> None:
            ends[event.run_id] = time.monotonic_ns()
            if len(ends) == runs:
                over.set()

        if not parked:
            await start_all(engine, graph, runs)
            await all_at_rest(engine)
        print("waiting", flush=True)
        await over.wait()
    print("\n".join(f"{id} {at}" for id, at in ends.items()))


if __name__ == "__main__":
    URL, RUNS, HOW = sys.argv[1:]
    asyncio.run(main(URL, int(RUNS), HOW == "parked"))
