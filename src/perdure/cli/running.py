"""All runs of a store that are running, followed from what whoever works on them records.

Bounded: so many are followed at a time, the newest; one that is followed stays so until it ends,
and of the others it is said how many there are.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, Self

import msgspec

from perdure.client.viewing import Viewing, viewing
from perdure.model.errors import NotFound, StoreError
from perdure.stores.port import RunQuery, RunRow, Store

if TYPE_CHECKING:
    from perdure.feed.view import RunView

#: Seconds between looks.
LOOK: Final = 0.5
#: Runs that are followed at a time.
ROOM: Final = 30


class Seen(msgspec.Struct):
    """A run as of this look. `new`: it was not seen before; `changed`: since the look before."""

    view: RunView
    stalled: str | None
    new: bool
    changed: bool


class Board(Protocol):
    """Where the runs are shown. A context manager."""

    def show(self, runs: Sequence[Seen], more: int) -> None:
        """These are followed, in the order in which they came; so many more are not."""

    def note(self, text: str) -> None:
        """Something to say beside the runs."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


class _Followed(msgspec.Struct):
    """A run, and what its row said at the last look."""

    viewing: Viewing
    row: RunRow
    new: bool = True


class Running:
    """The running runs of a store. `more`: how many are running that are not followed."""

    def __init__(self, store: Store, room: int = ROOM) -> None:
        self._store = store
        self._room = room
        self._followed: dict[bytes, _Followed] = {}
        self.more = 0

    async def look(self) -> list[Seen]:
        """How the runs stand; those that ended since are among them, this once. Raises
        StoreError."""
        found = await self._store.find(RunQuery(status=("running",), limit=self._room))
        rows = {row.key: row for row in found}
        seen = []
        for key, followed in list(self._followed.items()):
            row = rows.get(key)
            changed = (row is None or _may_have_gone_on(followed.row, row)) and (
                await followed.viewing.look()
            )
            followed.row = row or followed.row
            if row is None and not changed and await self._is_gone(followed.row):
                del self._followed[key]
                continue
            view = followed.viewing.view
            seen.append(Seen(view, followed.row.stalled, False, changed))
            if view.outcome:
                del self._followed[key]
        for row in reversed(found):  # the oldest first: in the order in which they came
            if len(self._followed) < self._room and row.key not in self._followed:
                followed = _Followed(await viewing(self._store, row), row)
                if not followed.viewing.view.outcome:
                    self._followed[row.key] = followed
                    seen.append(Seen(followed.viewing.view, row.stalled, True, True))
        self.more = await self._others(rows)
        return seen

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


async def watch_all(url: str, seconds: float | None, *, as_json: bool) -> None:
    """Show what runs, for so long or until somebody ends it. A store that does not answer for a
    while is asked again; raises StoreError where it does not at first."""
    from perdure.client.client import Client

    async with Client(url) as client:
        running, trouble = Running(client._store), ""
        seen = await running.look()
        with _board(as_json=as_json) as board:
            if not seen:
                board.note("nothing is running; what starts is shown, until Ctrl-C")
            board.show(seen, running.more)
            loop = asyncio.get_running_loop()
            until = None if seconds is None else loop.time() + seconds
            while until is None or loop.time() < until:
                left = LOOK if until is None else min(LOOK, max(until - loop.time(), 0))
                await asyncio.sleep(left)
                try:
                    board.show(await running.look(), running.more)
                    trouble = ""
                except StoreError as error:
                    if str(error) != trouble:
                        trouble = str(error)
                        board.note(f"the store does not answer, and is asked again: {trouble}")


def _board(*, as_json: bool) -> Board:
    from perdure.cli.output import has_rich

    if as_json:
        from perdure.cli.running_lines import Frames

        return Frames()
    if sys.stdout.isatty() and has_rich():
        from perdure.cli.running_picture import RunningPicture

        return RunningPicture()
    from perdure.cli.running_lines import RunningLines

    return RunningLines()
