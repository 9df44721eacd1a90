"""A worker that is killed, stopped and continued: it serves the graphs of waiting.py.

Run as a module with a Launch as JSON; says "up" once its engine is open. SIGTERM ends it in
order, without waiting for what is executing. It exits with LOCKED if somebody keeps the file.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Final

import msgspec

from perdure import Engine, StoreError
from tests.chaos.waiting import GRAPHS, LOGS, STEPS, Log

LOCKED: Final = 42


class Launch(msgspec.Struct):
    """What a worker is told."""

    number: int
    db: str
    log: str
    sync: str


async def main(launch: Launch) -> None:
    store = f"sqlite:///{launch.db}?sync={launch.sync}"
    engine = Engine(store, [*GRAPHS, *STEPS], grace=0, poll=0.1, park_after=0.2)
    LOGS.append(Log(launch.log, launch.number, lambda: engine._shell.worker))
    async with engine:
        sys.stdout.write("up\n")
        sys.stdout.flush()
        await engine.serve()


if __name__ == "__main__":
    try:
        asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Launch)))
    except StoreError as error:
        if "locked" not in str(error):
            raise
        sys.stderr.write(f"gave up: {error}\n")
        sys.exit(LOCKED)
