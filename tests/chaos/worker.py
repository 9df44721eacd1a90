"""A worker that is killed, stopped and continued: it serves the graphs of waiting.py.

Run as a module with a Launch as JSON; says "up" once its engine is open. SIGTERM ends it in
order, without waiting for what is executing. It exits with LOCKED if somebody keeps the file.

At the signals of BEFORE it stops itself between deciding and recording: stopped from outside, it
nearly always learns first that it was declared dead, and then records nothing anyway.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from perdure import Engine, StoreError
from perdure.codec.journal import decode_row
from perdure.kernel.actions import CompleteTask
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow
from perdure.stores.sqlite import SqliteStore
from tests.chaos.waiting import GRAPHS, LOGS, STEPS, Log

LOCKED: Final = 42
#: Seconds a worker may take to come to what it was told to stop at; then it forgets it.
HOLD_WITHIN: Final = 4.0
#: At which signal it stops before which row: any, or one that records the outcome of this node.
BEFORE: Final = {signal.SIGUSR1: "", signal.SIGUSR2: "long"}


class Launch(msgspec.Struct):
    """What a worker is told."""

    number: int
    db: str
    log: str
    sync: Literal["full", "normal"]


class StoppingStore(SqliteStore):
    """Stops the process before a commit, when told to."""

    before: str | None = None
    until = 0.0

    def listen(self) -> None:
        for number in BEFORE:
            signal.signal(number, self._told)

    def _told(self, number: int, frame: object) -> None:
        self.before = BEFORE[signal.Signals(number)]
        self.until = time.monotonic() + HOLD_WITHIN

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        before = self.before
        if before is not None and any(not before or completes(row, before) for row in rows):
            self.before = None
            if time.monotonic() < self.until:
                signal.raise_signal(signal.SIGSTOP)
        super().commit(rows, done)


def completes(row: JournalRow, node: str) -> bool:
    """Whether the row records the outcome of this node."""
    return any(
        type(action) is CompleteTask and action.node == node
        for transition in decode_row(row.body)
        for action in transition.actions
    )


async def main(launch: Launch) -> None:
    store = StoppingStore(launch.db, synchronous=launch.sync)
    store.listen()
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
