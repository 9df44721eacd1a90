"""A worker that stops itself at one exact moment: the store has been handed something, and has not
begun with it. Whoever runs it lets it go on with SIGCONT, and hears what the store said.

Run as a module with a Launch as JSON. Standard output, a line each: "up ID" once the engine is
open, "held" before it stops, then what became of what it held.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from perdure import Engine, step
from perdure.codec.journal import decode_row
from perdure.stores.answers import CommitDone
from perdure.stores.rows import JournalRow, Park
from perdure.stores.sqlite import SqliteStore
from tests.chaos.filling import FILLING, fill
from tests.chaos.waiting import LOGS, Log
from tests.virtual.engines import graph, task, wait_for


class Launch(msgspec.Struct):
    """What a worker is told. It stops at a row with an action of this type on this node ("type
    node"), at its first "park", or never. Its steps end at once or, if `gate` is a path, when
    there is a file. `serves`: whether it takes runs; if not, it only frees what the dead hold."""

    number: int
    db: str
    log: str
    hold: str = ""
    gate: str = ""
    serves: bool = True
    park_after: float = 60.0


#: What this process was told.
TOLD: Final[list[Launch]] = []


@step
def work(after: Any = None) -> int:
    """Which worker did it."""
    LOGS[0].note()
    while TOLD[0].gate and not Path(TOLD[0].gate).exists():
        time.sleep(0.01)
    return TOLD[0].number


HANDED: Final = graph(
    "handed",
    [wait_for("go", "go"), task("first", "work", {"after": "{{tasks.go.output}}"}),
     task("second", "work", {"after": "{{tasks.first.output}}"})],
    output={"told": "{{tasks.go.output}}", "first": "{{tasks.first.output}}",
            "second": "{{tasks.second.output}}"},
)  # fmt: skip


def tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class HoldingStore(SqliteStore):
    """Stops the whole process before one commit, or before one park."""

    hold = ""
    #: How many runs the engine has in hand.
    in_hand: Callable[[], int]

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        if any(self._is_it(row) for row in rows):
            done = self._handing(done)
            self._stop()
        super().commit(rows, done)

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        if self.hold != "park":
            return await super().park(worker, parks)
        self._stop()
        parked = await super().park(worker, parks)
        tell(f"parked {list(parked)}")
        return parked

    def _is_it(self, row: JournalRow) -> bool:
        return any(
            f"{type(action).__name__} {getattr(action, 'node', '')}" == self.hold
            for transition in decode_row(row.body)
            for action in transition.actions
        )

    def _stop(self) -> None:
        self.hold = ""
        tell("held")
        signal.raise_signal(signal.SIGSTOP)

    def _handing(self, done: CommitDone) -> CommitDone:
        def answered(answer: Sequence[Any] | Exception) -> None:
            done(answer)
            said = str(answer) if isinstance(answer, Exception) else " ".join(answer)
            # An answer that comes before `commit` returns is acted on after that.
            loop = asyncio.get_running_loop()
            loop.call_soon(lambda: tell(f"{said}, {self.in_hand()} in hand"))

        return answered


async def main() -> None:
    told = TOLD[0]
    store = HoldingStore(told.db)
    store.hold = told.hold
    served = (HANDED, work, FILLING, fill) if told.serves else ()
    engine = Engine(store, served, grace=0, poll=0.1, park_after=told.park_after)
    store.in_hand = lambda: len(engine._shell.live)
    LOGS.append(Log(told.log, told.number, lambda: engine._shell.worker))
    async with engine:
        tell(f"up {engine._shell.worker}")
        await engine.serve()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    TOLD.append(msgspec.json.decode(sys.argv[1], type=Launch))
    asyncio.run(main())
