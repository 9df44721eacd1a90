"""A store whose process dies at the n-th write, before it or after it, always unanswered.

A write is a batch of rows or of starts, mail that is posted, a run that is parked or claimed for a
retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Literal

from perdure.client.engine import Engine
from perdure.codec.journal import decode_row
from perdure.stores.port import StoredRow
from tests.virtual.engines import kill

#: Opens a store, the same one each time, as another process would.
Opener = Callable[[], Any]
When = Literal["before", "after"]


class CrashingStore:
    """Counts all writes together, from 1. From the crash on nothing is written or answered."""

    def __init__(self, inner: Any, at: int = 0, when: When = "before") -> None:
        self.inner = inner
        self.durable = inner.durable
        self.writes = 0
        #: How many runs were let go, and heard of it.
        self.parked = 0
        self.crashed = asyncio.Event()
        self._at = at
        self._when = when

    def commit(self, rows: Sequence[Any], done: Any) -> None:
        self._write(self.inner.commit, rows, done)

    def start(self, runs: Sequence[Any], done: Any) -> None:
        self._write(self.inner.start, runs, done)

    def _write(self, write: Any, rows: Sequence[Any], done: Any) -> None:
        if self.crashed.is_set():
            return
        self.writes += 1
        if self.writes != self._at:
            write(rows, lambda answer: None if self.crashed.is_set() else done(answer))
        elif self._when == "before":
            self.crashed.set()
        else:
            write(rows, lambda answer: self.crashed.set())

    async def post(self, *args: Any) -> Any:
        return await self._call(self.inner.post, *args)

    async def park(self, *args: Any) -> Any:
        answers = await self._call(self.inner.park, *args)
        self.parked += sum(answers)
        return answers

    async def claim_finished(self, *args: Any) -> Any:
        return await self._call(self.inner.claim_finished, *args)

    async def _call(self, write: Any, *args: Any) -> Any:
        answer = None
        if not self.crashed.is_set():
            self.writes += 1
            crashes = self.writes == self._at
            if not (crashes and self._when == "before"):
                answer = await write(*args)
            if crashes:
                self.crashed.set()
        if self.crashed.is_set():
            await asyncio.Event().wait()
        return answer

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def rows_of(store: Any, definition: str, id: str) -> list[StoredRow]:
    """The journal rows of a run; none when it was never written."""
    from perdure.model.errors import NotFound

    try:
        row = await store.describe(definition, id)
    except NotFound:
        return []
    return list((await store.load(row.key)).journal)


def outcomes(rows: Sequence[StoredRow]) -> set[tuple[str, int]]:
    """The (node, attempt) whose outcome these rows record; attempts from 0."""
    return {
        (action.node, action.attempt)
        for row in rows
        for transition in decode_row(row.body)
        for action in transition.actions
        if type(action).__name__ in ("CompleteTask", "FailTask", "RetryTask")
    }


def task_outcomes(rows: Sequence[StoredRow]) -> list[tuple[str, int]]:
    """(task, attempt) of every recorded outcome, in order and repeated if it is; from 0."""
    return [
        (action.task, action.attempt)
        for row in rows
        for transition in decode_row(row.body)
        for action in transition.actions
        if type(action).__name__ in ("CompleteTask", "FailTask", "RetryTask")
    ]


@asynccontextmanager
async def dying(engine: Engine, store: Any) -> AsyncIterator[Engine]:
    """The engine of a process that is killed at the end, with whatever its store held."""
    try:
        await engine.__aenter__()
        yield engine
    finally:
        await kill(engine)
        getattr(store, "crash", lambda worker: None)(engine._shell.worker)
        await store.close()


async def until_crash(
    store: CrashingStore,
    process: AbstractAsyncContextManager[Engine],
    work: Callable[[Engine], Awaitable[Any]],
) -> Any:
    """What the work gave, or None after a crash."""
    async with process as engine:
        working = asyncio.ensure_future(work(engine))
        crashed = asyncio.ensure_future(store.crashed.wait())
        await asyncio.wait([working, crashed], return_when=asyncio.FIRST_COMPLETED)
        ended = None if store.crashed.is_set() else working.result()
        working.cancel()
        crashed.cancel()
        await asyncio.wait([working, crashed])
        return ended


async def crash_points(crash_once: Callable[[int], Awaitable[bool]]) -> int:
    """Crash at the first write, the second, …, until there is none; how many there were."""
    at = 1
    while await crash_once(at):
        at += 1
    return at - 1
