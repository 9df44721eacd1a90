"""All runs of a store that are running, followed from what whoever works on them records.

Bounded: so many are followed at a time, the newest; one that is followed stays so until it ends,
and of the others it is said how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from perdure.client.viewing import Viewing, viewing
from perdure.model.errors import NotFound, StoreError
from perdure.stores.answers import RunRow
from perdure.stores.port import RunQuery, Store

if TYPE_CHECKING:
    from perdure.feed.view import RunView

#: Runs that are followed at a time.
ROOM: Final = 30


class Seen(msgspec.Struct):
    """A run as of this look. `new`: it was not seen before; `changed`: since the look before."""

    view: RunView
    stalled: str | None
    new: bool
    changed: bool


class _Followed(msgspec.Struct):
    """A run, and what its row said at the last look."""

    viewing: Viewing
    row: RunRow


class Running:
    """The running runs of a store. `more`: how many are running that are not followed; `trouble`:
    why not all could be read at the last look, "" if all were."""

    def __init__(self, store: Store, room: int = ROOM) -> None:
        self._store = store
        self._room = room
        self._followed: dict[bytes, _Followed] = {}
        self.more = 0
        self.trouble = ""

    async def look(self) -> list[Seen]:
        """How the runs stand; those that ended since are among them, this once. One that cannot be
        read hides no other: it is read at the next look. Raises StoreError where the store does
        not say what runs, with nothing of it lost."""
        found = await self._store.find(RunQuery(status=("running",), limit=self._room))
        rows, self.trouble = {row.key: row for row in found}, ""
        seen = []
        for key, followed in list(self._followed.items()):
            with self._troubled():
                one = await self._again(followed, rows.get(key))
                if one is not None:
                    seen.append(one)
                if one is None or one.view.outcome:
                    del self._followed[key]
        for row in reversed(found):  # the oldest first: in the order in which they came
            if len(self._followed) < self._room and row.key not in self._followed:
                with self._troubled():
                    followed = _Followed(await viewing(self._store, row), row)
                    if not followed.viewing.view.outcome:
                        self._followed[row.key] = followed
                        seen.append(Seen(followed.viewing.view, row.stalled, True, True))
        with self._troubled():
            self.more = await self._others(rows)
        return seen

    async def _again(self, followed: _Followed, row: RunRow | None) -> Seen | None:
        """A run that was seen before; None where it is not there any more. `row`: what the store
        says of it, if it still runs."""
        changed = (row is None or _may_have_gone_on(followed.row, row)) and (
            await followed.viewing.look()
        )
        if row is None and not changed and await self._is_gone(followed.row):
            return None
        followed.row = row or followed.row
        return Seen(followed.viewing.view, followed.row.stalled, False, changed)

    @contextmanager
    def _troubled(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            self.trouble = str(error)

    async def _others(self, rows: dict[bytes, RunRow]) -> int:
        if len(rows) < self._room:
            return len(rows.keys() - self._followed.keys())
        count = sum(one.running for one in await self._store.definitions())
        return max(count - len(self._followed), 0)

    async def _is_gone(self, row: RunRow) -> bool:
        """Whether a run that does not run any more is not there at all, or was not seen to end."""
        try:
            return (await self._store.describe(row.definition, row.id)).status != "running"
        except NotFound:
            return True


def _may_have_gone_on(before: RunRow, now: RunRow) -> bool:
    mark = (before.epoch, before.mail, before.owner, before.stalled)
    return now.owner is not None or mark != (now.epoch, now.mail, now.owner, now.stalled)
