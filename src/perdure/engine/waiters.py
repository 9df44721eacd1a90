"""Waiters: who wants to know how a run ended.

A run that is live in this process answers at once; any other is looked up, less and less often.
Waiting never owns the run: a caller that goes away changes nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from perdure.kernel.actions import FinishRun
from perdure.model.errors import PerdureError, StoreError
from perdure.model.failure import FailureRecord
from perdure.model.status import TERMINAL
from perdure.stores.port import RunRow, Store

FIRST_LOOK: Final = 0.02
RAREST_LOOK: Final = 1.0


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended. `output` is JSON text."""

    status: str
    output: bytes | None = None
    failure: FailureRecord | None = None


class Waiters:
    """Futures by run, answered by the engine or by looking at the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._futures: dict[bytes, list[asyncio.Future[Outcome]]] = {}
        self._closed = False

    def ended(self, key: bytes, action: FinishRun) -> None:
        """A run of this process ended, durably."""
        futures = self._futures.pop(key, None)
        if not futures:
            return
        output = None if action.output is None else bytes(action.output)
        outcome = Outcome(action.status, output, action.failure)
        for future in futures:
            if not future.done():
                future.set_result(outcome)

    async def wait(self, row: RunRow) -> Outcome:
        """How the run ended, whoever runs it. Raises StoreError when the store stays away."""
        if row.status in TERMINAL:
            return await stored_outcome(self._store, row)
        if self._closed:
            raise PerdureError("the engine is closed")
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._futures.setdefault(row.key, []).append(future)
        try:
            return await self._answer(row, future)
        finally:
            futures = self._futures.get(row.key)
            if futures is not None and future in futures:
                futures.remove(future)
                if not futures:
                    del self._futures[row.key]

    async def _answer(self, row: RunRow, future: asyncio.Future[Outcome]) -> Outcome:
        pause = FIRST_LOOK
        while True:
            done, _ = await asyncio.wait([future], timeout=pause)
            if done:
                return future.result()
            pause = min(pause * 1.6, RAREST_LOOK)
            try:
                row = await self._store.describe(row.definition, row.id)
            except StoreError:
                continue
            if row.status in TERMINAL and not future.done():
                return await stored_outcome(self._store, row)

    def close(self) -> None:
        """The engine stops: whoever still waits is told so."""
        self._closed = True
        for futures in self._futures.values():
            for future in futures:
                if not future.done():
                    future.set_exception(
                        PerdureError("the engine was closed; the run goes on when one runs again")
                    )
        self._futures.clear()


async def stored_outcome(store: Store, row: RunRow) -> Outcome:
    """The outcome of a run that has ended, from its row."""
    output = row.output
    if output is None and row.output_at is not None:
        output = (await store.payloads(row.key, [row.output_at]))[0]
    failure = None if row.failure is None else msgspec.json.decode(row.failure, type=FailureRecord)
    return Outcome(row.status, output, failure)
