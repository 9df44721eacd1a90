"""Reading page by page: what a page of runs begins after when its last run is gone, and journals
of any length, of which never more than a page is held."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from perdure.stores.answers import StoredRow
    from perdure.stores.port import Store

#: Rows of a journal that are read at a time.
PAGE: Final = 200


def born(key: bytes) -> int:
    """When a run with this key was created, in µs, to the millisecond: a UUIDv7 begins with it."""
    return int.from_bytes(key[:6], "big") * 1000


async def rows_of(store: Store, key: bytes, after: int) -> AsyncIterator[StoredRow]:
    """A run's journal rows with a number over `after`, in order. What is written while it is read
    may be among them. Raises StoreError."""
    while True:
        rows = await store.rows(key, after, PAGE)
        for row in rows:
            yield row
        if len(rows) < PAGE:
            return
        after = rows[-1].seq
