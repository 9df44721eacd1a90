"""The sketch: a throw-away engine, as small as one can be that loses nothing.

A run is a task that awaits its steps in a context of their own, encodes what they give and goes on
once that is durable; the rows of all runs that are ready go together, on a writer's thread, in one
transaction. No graph, no retries, timeouts, signals, takeover, leases or idempotency; nothing can
be resumed. Budgets that name a rate name the sketch's beside it: what is judged is the ratio of the
two, in one run, since machines differ.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from queue import SimpleQueue
from types import coroutine
from typing import Any

import msgspec

from perdure.stores.sqlite.driver import Connection, sqlite3

_STEP: ContextVar[tuple[bytes, int]] = ContextVar("sketch_step")
_TABLES = (
    "CREATE TABLE run (key BLOB PRIMARY KEY, name, id, status, output) WITHOUT ROWID",
    "CREATE TABLE journal (run BLOB, seq, at, writer, body, PRIMARY KEY (run, seq))",
)
_encode = msgspec.json.Encoder().encode

Rows = list[tuple[Any, ...]]


class Sketch:
    """On a SQLite file, or in memory (`db` None). `body`: how large a journal row's is."""

    def __init__(self, db: Connection | None, body: int) -> None:
        self._db = db
        self._body = b"x" * body
        self._kept: dict[bytes, Rows] = {}
        self._waiting: list[tuple[tuple[Any, ...], str, asyncio.Future[None]]] = []
        self._writing = False
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Nothing is under way any more."""
        self._queue.put(None)
        self._thread.join()

    async def run(self, step: Callable[[], Awaitable[Any]], steps: int) -> None:
        """A run of so many steps, one after another."""
        # In order of birth, as any engine's: keys at random touch a page for each row.
        key = time.time_ns().to_bytes(8, "big") + os.urandom(8)
        await self._keep((key, 0, time.time_ns() // 1000, "w", self._body), "running")
        for seq in range(1, steps + 1):
            context = copy_context()
            context.run(_STEP.set, (key, seq))
            made: Any = step()
            try:
                waits = context.run(made.send, None)
            except StopIteration as stop:
                output = stop.value
            else:
                output = await _rest(made, context, waits)
            row = (key, seq, time.time_ns() // 1000, "w", self._body + _encode(output))
            await self._keep(row, "completed" if seq == steps else "")

    async def _keep(self, row: tuple[Any, ...], status: str) -> None:
        if self._db is None:
            self._kept.setdefault(row[0], []).append(row)
            return
        durable = self._loop.create_future()
        self._waiting.append((row, status, durable))
        if len(self._waiting) == 1 and not self._writing:
            self._loop.call_soon(self._flush)
        await durable

    def _flush(self) -> None:
        if self._waiting and not self._writing:
            self._writing = True
            batch, self._waiting = self._waiting, []
            self._queue.put(batch)

    def _done(self, batch: list[tuple[Any, str, asyncio.Future[None]]]) -> None:
        self._writing = False
        for _, _, durable in batch:
            durable.set_result(None)
        if self._waiting:
            self._loop.call_soon(self._flush)

    def _write(self) -> None:
        db = self._db
        while (batch := self._queue.get()) is not None:
            assert db is not None
            db.execute("BEGIN IMMEDIATE")
            _insert(db, "journal", 5, [row for row, _, _ in batch])
            begun = [
                (row[0], "sketch", row[0].hex(), "running", None)
                for row, to, _ in batch
                if to == "running"
            ]
            _insert(db, "run", 5, begun)
            ended = [row[0] for row, to, _ in batch if to == "completed"]
            for some in _parts(ended):
                marks = ",".join("?" * len(some))
                db.execute(f"UPDATE run SET status = 'completed' WHERE key IN ({marks})", some)
            db.execute("COMMIT")
            self._loop.call_soon_threadsafe(self._done, batch)


def _insert(db: Connection, table: str, columns: int, rows: Rows) -> None:
    """In few statements: between two of them the thread has to get the interpreter back."""
    marks = f"({','.join('?' * columns)})"
    for some in _parts(rows):
        text = f"INSERT INTO {table} VALUES {','.join([marks] * len(some))}"
        db.execute(text, [value for row in some for value in row])


def _parts(things: list[Any]) -> Iterator[list[Any]]:
    return (things[at : at + 512] for at in range(0, len(things), 512))


@coroutine
def _rest(made: Any, context: Any, waits: Any) -> Generator[Any, Any, Any]:
    """What is left of a step after it first waited."""
    while True:
        yield waits
        try:
            waits = context.run(made.send, None)
        except StopIteration as stop:
            return stop.value


async def rate(
    sync: str | None, body: int, step: Callable[[], Awaitable[Any]], steps: int, runs: int,
    at_a_time: int, *, busy: bool = False,
) -> float:  # fmt: skip
    """Steps a second of the sketch, so many runs at a time; of all runs at once where that is
    as many. `busy`: by the processor's time, for what never waits."""
    with _database(sync) as db:
        sketch = Sketch(db, body)
        numbers = iter(range(runs))

        async def one_after_another() -> None:
            for _ in numbers:
                await sketch.run(step, steps)

        clock = time.process_time if busy else time.perf_counter
        began = clock()
        async with asyncio.TaskGroup() as group:
            for _ in range(at_a_time):
                group.create_task(one_after_another())
        took = clock() - began
        sketch.close()
    return runs * steps / took


@contextmanager
def _database(sync: str | None) -> Iterator[Connection | None]:
    if sync is None:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        db = sqlite3.connect(
            Path(folder) / "sketch.db", isolation_level=None, check_same_thread=False
        )
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(f"PRAGMA synchronous = {sync}")
        for text in _TABLES:
            db.execute(text)
        yield db
        db.close()
