"""The process that W5 kills: runs chains of slow steps, each of which leaves a line in a file.

    python -m bench.crash_worker URL LOG start|finish RUNS NODES SECONDS

`start` starts the runs, `finish` takes those that are there; both wait for all of them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from bench.chains import line, node
from perdure import Engine, Graph, current_step, step

_log = -1


@step(name="slow")
async def slow(seconds: float) -> None:
    """Says that it began, then takes its time."""
    here = current_step()
    # One write to a file opened for appending: whole, whoever is killed when.
    os.write(_log, f"{here.run_id} {here.node}\n".encode())
    await asyncio.sleep(seconds)


def graph(nodes: int, seconds: float) -> Graph:
    """A chain of slow steps."""
    return line("slow-chain", [node(at, "slow", {"seconds": seconds}) for at in range(nodes)])


async def main(url: str, log: str, what: str, runs: int, chain: Graph) -> None:
    """Do what the command line says."""
    global _log  # noqa: PLW0603  the step of this process's only engine
    _log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    async with Engine(url, [chain, slow]) as engine:
        ids = [f"r{at}" for at in range(runs)]
        if what == "start":
            await asyncio.gather(*(engine.start(chain, id=id) for id in ids))
            print("started", flush=True)
        await asyncio.gather(*(engine.get(chain, id).result() for id in ids))
        print("finished", flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # that owners died is what W5 is about
    URL, LOG, WHAT, RUNS, NODES, SECONDS = sys.argv[1:]
    asyncio.run(main(URL, LOG, WHAT, int(RUNS), graph(int(NODES), float(SECONDS))))
