"""Retention: finished runs are forgotten once their time is over, a few at a time."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from perdure.model.errors import StoreError
from perdure.stores.port import Store

_log = logging.getLogger("perdure.engine")

#: Seconds between two looks.
EVERY: Final = 60.0
#: Runs forgotten in one transaction, and seconds of rest after each.
BATCH: Final = 100
REST: Final = 0.05


async def purge_for_ever(store: Store) -> None:
    """Forget what is over its time, every minute, until cancelled."""
    while True:
        await asyncio.sleep(EVERY)
        try:
            count = await purge(store)
        except StoreError as error:
            _log.warning("finished runs could not be purged (%s): again in a while", error)
        except Exception:
            _log.exception("purging failed")
        else:
            if count:
                _log.info("%d finished run(s) past their retention were purged", count)


async def purge(store: Store) -> int:
    """Forget all that is over its time now, in batches that leave others their turn; how many
    runs. Raises StoreError."""
    total = 0
    while True:
        count = await store.purge(BATCH)
        total += count
        if count < BATCH:
            return total
        await asyncio.sleep(REST)
