"""Processes that die at the n-th write of a store, and what is looked at afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from perdure.client.engine import Engine
from perdure.codec.journal import decode_row
from perdure.stores.answers import StoredRow
from perdure.testing.crashing import CrashingStore, When
from tests.virtual.engines import kill

__all__ = ["CrashingStore", "When"]

#: Opens a store, the same one each time, as another process would.
Opener = Callable[[], Any]


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
