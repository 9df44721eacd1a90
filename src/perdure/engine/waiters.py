"""Waiters: who wants to know how a run ended.

A run that is live in this process answers at once; any other is looked up, less and less often.
Waiting never owns the run: a caller that goes away changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from perdure.kernel.actions import FinishRun
from perdure.model.driving import Outcome
from perdure.model.errors import PerdureError, StoreError
from perdure.model.failure import FailureRecord
from perdure.model.status import TERMINAL
from perdure.stores.answers import RunRow
from perdure.stores.port import Store

_log = logging.getLogger("perdure.engine")

FIRST_LOOK: Final = 0.02
RAREST_LOOK: Final = 1.0


class Waiters:
    """Futures by run: answered when it ends here, or by looking at the store.

    `is_live` says whether a run is in this process's memory: then its end is told, and nobody
    needs to look.
    """

    def __init__(self, store: Store, is_live: Callable[[bytes], bool] = lambda key: False) -> None:
        self._store = store
        self._is_live = is_live
        self._futures: dict[bytes, list[asyncio.Future[Outcome | None]]] = {}
        self._closed = False

    def ended(self, key: bytes, action: FinishRun) -> None:
        """A run of this process ended, durably."""
        waiting = self._futures.pop(key, None)
        if waiting is not None:
            output = None if action.output is None else bytes(action.output)
            _answer(waiting, Outcome(action.status, output, action.failure))

    def left(self, key: bytes) -> None:
        """A run left this process without having ended: whoever waits has to look for it."""
        _answer(self._futures.pop(key, ()), None)

    def close(self) -> None:
        """The engine stops: whoever still waits is told so."""
        self._closed = True
        for key in list(self._futures):
            self.left(key)

    async def wait(self, row: RunRow) -> Outcome:
        """How the run ended, whoever runs it. One that is stalled may go on: that it is, and why,
        is said once. Raises PerdureError when the engine closes."""
        pause, stalled = FIRST_LOOK, None
        while row.status not in TERMINAL:
            if self._closed:
                raise PerdureError("the engine was closed; the run goes on when one runs again")
            if row.stalled is not None and row.stalled != stalled:
                stalled = row.stalled
                _log.warning(
                    "waiting for %s/%s, which is stalled: %s. It goes on when a worker opens that "
                    "can run it, or when it is unpaused; or cancel it",
                    row.definition, row.id, stalled,
                )  # fmt: skip
            told = await self._told(row.key, None if self._is_live(row.key) else pause)
            if told is not None:
                return told
            pause = min(pause * 1.6, RAREST_LOOK)
            with contextlib.suppress(StoreError):  # it may be back at the next look
                row = await self._store.describe(row.definition, row.id)
        return await stored_outcome(self._store, row)

    def told(self, key: bytes) -> asyncio.Future[Outcome | None]:
        """How a run that is live here ended; None if it left this process before that. Whoever
        goes away before it is done says so, with `forget`."""
        future: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        waiting = self._futures.get(key)
        if waiting is None:
            self._futures[key] = [future]
        else:
            waiting.append(future)
        return future

    def forget(self, key: bytes, future: asyncio.Future[Outcome | None]) -> None:
        """Nobody waits for it any more."""
        waiting = self._futures.get(key)
        if waiting is not None and future in waiting:
            waiting.remove(future)
            if not waiting:
                del self._futures[key]

    async def _told(self, key: bytes, seconds: float | None) -> Outcome | None:
        """The outcome, if it is told within that time; None = no limit."""
        future = self.told(key)
        try:
            if seconds is None:
                return await future
            await asyncio.wait([future], timeout=seconds)
            return future.result() if future.done() else None
        finally:
            self.forget(key, future)


def _answer(waiting: Iterable[asyncio.Future[Outcome | None]], outcome: Outcome | None) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(outcome)


async def stored_outcome(store: Store, row: RunRow) -> Outcome:
    """The outcome of a run that has ended, from its row."""
    output = row.output
    if output is None and row.output_at is not None:
        output = (await store.payloads(row.key, [row.output_at]))[0]
    failure = None if row.failure is None else msgspec.json.decode(row.failure, type=FailureRecord)
    return Outcome(row.status, output, failure)
