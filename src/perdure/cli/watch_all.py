"""All runs of a store that are running, shown as they go on: as a picture at a terminal, else as
lines, or as JSON."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from typing import Final, Protocol, Self

from perdure.cli.running import Running, Seen
from perdure.model.errors import StoreError

#: Seconds between looks.
LOOK: Final = 0.5


class Board(Protocol):
    """Where the runs are shown. A context manager."""

    def show(self, runs: Sequence[Seen], more: int) -> None:
        """These are followed, in the order in which they came; so many more are not."""

    def note(self, text: str) -> None:
        """Something to say beside the runs."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


async def watch_all(url: str, seconds: float | None, *, as_json: bool) -> None:
    """Show what runs, for so long or until somebody ends it. A store that does not answer for a
    while is asked again; raises StoreError where it does not at first."""
    from perdure.client.client import Client
    from perdure.client.urls import store_of

    async with Client(store_of(url, read_only=True)) as client:
        running, said = Running(client._store), ""
        seen = await running.look()
        with _board(as_json=as_json) as board:
            if not seen and not running.trouble:
                board.note("nothing is running; what starts is shown, until Ctrl-C")
            board.show(seen, running.more)
            loop = asyncio.get_running_loop()
            until = None if seconds is None else loop.time() + seconds
            while True:
                if running.trouble and running.trouble != said:
                    board.note(f"the store does not answer, and is asked again: {running.trouble}")
                said = running.trouble
                if until is not None and loop.time() >= until:
                    return
                left = LOOK if until is None else min(LOOK, max(until - loop.time(), 0))
                await asyncio.sleep(left)
                try:
                    board.show(await running.look(), running.more)
                except StoreError as error:
                    running.trouble = str(error)


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
