"""Memory stores in virtual time, and one that can be slow, hold commits back, fail and forget."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from perdure.codec.journal import decode_row
from perdure.kernel.actions import Transition
from perdure.model.errors import StoreError
from perdure.stores.answers import CommitDone, StartDone
from perdure.stores.memory import MemoryStore
from perdure.stores.rows import NEVER, JournalRow, NewRun
from perdure.stores.sqlite.store import SqliteStore
from tests.virtual.loop import VirtualClock

Work = Callable[[], None]


class VirtualStore(MemoryStore):
    """A MemoryStore by the loop's clock. It answers before a call returns."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()

    def now(self) -> int:
        return self.clock.now()

    def hand_over(self, key: bytes, worker: str) -> None:
        """Let another worker, one that lives for ever, have taken the run."""
        taken = self._runs[key]
        taken.owner, taken.epoch = worker, taken.epoch + 1
        self._leases[worker] = NEVER
        self._places.put(key, taken)

    async def journal(self, definition: str, id: str) -> list[Transition]:
        """What is recorded of a run."""
        loaded = await self.load((await self.describe(definition, id)).key)
        assert [row.seq for row in loaded.journal] == list(range(1, len(loaded.journal) + 1))
        return [t for row in loaded.journal for t in decode_row(row.body)]

    async def actions(self, definition: str, id: str) -> list[str]:
        """The names of what is recorded, with nodes: "CompleteTask a"."""
        return [
            f"{type(action).__name__} {getattr(action, 'node', '')}".strip()
            for transition in await self.journal(definition, id)
            for action in transition.actions
        ]


class PromptStore(VirtualStore):
    """Durable, and its disk so quick that it answers while it is asked."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        #: Every batch that was sent, as it came.
        self.sent: list[list[JournalRow]] = []

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        self.sent.append(list(rows))
        super().commit(rows, done)


class LateStore(VirtualStore):
    """Answers `latency` seconds later, as a disk does, with nothing written before.

    While `holding`, batches are kept until `let_go`. An error in `failures` is one batch's
    answer: it is not written, or if `written_all_the_same` it is.
    """

    durable = True

    def __init__(self, latency: float = 0.001) -> None:
        super().__init__()
        self.latency = latency
        self.holding = False
        self.held: deque[Work] = deque()
        self.failures: deque[Exception] = deque()
        self.written_all_the_same = False
        #: Every batch that was sent, as it came.
        self.sent: list[list[JournalRow]] = []

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        self.sent.append(list(rows))
        self._later(lambda d: super(LateStore, self).commit(rows, d), done)

    def start(self, runs: Sequence[NewRun], done: StartDone) -> None:
        self._later(lambda d: super(LateStore, self).start(runs, d), done)

    def _later(self, write: Callable[[Any], None], done: Any) -> None:
        def work() -> None:
            failure = self.failures.popleft() if self.failures else None
            if failure is None:
                write(done)
                return
            if self.written_all_the_same:
                write(lambda _: None)
            done(failure)

        if self.holding:
            self.held.append(work)
        else:
            asyncio.get_running_loop().call_later(self.latency, work)

    def let_go(self, count: int | None = None) -> None:
        """Carry out the batches held back, or the first `count` of them."""
        for _ in range(len(self.held) if count is None else count):
            self.held.popleft()()


def down(times: int = 1) -> list[Exception]:
    """A store that does not answer, so many times."""
    return [StoreError("the disk is away") for _ in range(times)]


class VirtualFile(SqliteStore):
    """A SQLite file by the loop's clock, also in its own threads."""

    async def open(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.began = VirtualClock().now() - round(self.loop.time() * 1_000_000)
        await super().open()

    def now(self) -> int:
        return self.began + round(self.loop.time() * 1_000_000)
