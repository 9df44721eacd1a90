"""Viewing: how runs stand that others work on, told from what they recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.codec.journal import decode_row
from perdure.drivers.native import rebuild
from perdure.feed.journal import take
from perdure.feed.view import RunView
from perdure.model.errors import PerdureError, StoreError
from perdure.stores.paging import rows_of

if TYPE_CHECKING:
    from perdure.stores.answers import RunRow
    from perdure.stores.port import Store


class Viewing:
    """One run, followed. `view` is as of the last `look`."""

    def __init__(self, store: Store, row: RunRow, plan: tuple[str, ...]) -> None:
        self._store = store
        self._plan = plan
        #: The last row that is in the view, and the last one that was told of.
        self._seq = self._told = 0
        self.key = row.key
        self.view = RunView(row.definition, row.id, version=row.version)
        self.view.plan(plan)

    async def look(self) -> bool:
        """Read what was recorded since; whether there was anything. Raises StoreError: then the
        next look tells of what this one read."""
        async for row in rows_of(self._store, self.key, self._seq):
            take(self.view, decode_row(row.body), self._plan)
            self._seq = row.seq
        changed = self._seq > self._told
        self._told = self._seq
        return changed


async def planned(store: Store, hash: str) -> tuple[str, ...]:
    """The steps of a definition's plan; none where only code knows, or nobody does."""
    try:
        return rebuild(await store.definition(hash)).planned
    except StoreError:
        raise
    except PerdureError:  # it is made by code, or written by a newer perdure
        return ()


async def viewing(store: Store, row: RunRow) -> Viewing:
    """A run as it stands now, to be followed."""
    made = Viewing(store, row, await planned(store, row.hash))
    await made.look()
    return made
