"""Starting a run from a process that does not work: it is written without an owner, and whoever
claims it goes on with it.

A start whose outcome is unknown (the store failed while it was being written) is sent again with
the same key: if the first try was accepted after all, the store says that it is ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from perdure.model.errors import StoreError
from perdure.stores.answers import Started
from perdure.stores.port import Store
from perdure.stores.rows import NewRun

#: How long a start is sent again before the caller is told, and the first pause, in seconds.
PATIENCE: Final = 5.0
FIRST_PAUSE: Final = 0.05


async def start_unowned(store: Store, run: NewRun) -> Started:
    """Write the start. Raises StoreError when it is still unknown after PATIENCE."""
    pause, waited = FIRST_PAUSE, 0.0
    while True:
        try:
            return await _started(store, run)
        except StoreError as error:
            if waited + pause > PATIENCE:
                raise StoreError(
                    f"whether {run.definition}/{run.id} was started is not known: {error}; "
                    "start it again with this id and if_exists='join'"
                ) from error
        await asyncio.sleep(pause)
        waited += pause
        pause *= 2


async def _started(store: Store, run: NewRun) -> Started:
    future: asyncio.Future[Started] = asyncio.get_running_loop().create_future()

    def done(answers: Sequence[Started] | Exception) -> None:
        if future.done():
            return
        if isinstance(answers, Exception):
            future.set_exception(answers)
        else:
            future.set_result(answers[0])

    store.start([run], done)
    return await future
