"""What the store says while the demo goes on: the run's records as they are written, and who
holds it. Only looked at, by a client that takes no lock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from perdure.cli.demo.stage import PATIENCE, trouble
from perdure.cli.node_view import Change
from perdure.cli.nodes import NodeBook
from perdure.model.errors import NotFound, StoreError
from perdure.model.status import TERMINAL

if TYPE_CHECKING:
    from perdure.cli.options import RunName

#: Seconds between looks.
LOOK: Final = 0.1


class Journal:
    """`records`: everything recorded of the run; `holder`: the name of the worker that has it;
    `names`: of all workers ever seen, by id. `heard`: called with each change, and who wrote it.
    """

    def __init__(self, store: str, run: RunName, heard: Callable[[Change, str], None]) -> None:
        self._url = store
        self._name = run
        self._heard = heard
        self._runner = asyncio.Runner()
        self._book = NodeBook()
        self.records: list[Mapping[str, Any]] = []
        self.names: dict[str, str] = {}
        self.holder: str | None = None
        self.status = "running"
        self.stalled: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return self.status in TERMINAL

    @property
    def book(self) -> NodeBook:
        """The run's nodes, as of the last look; a copy."""
        return book_of(self.records)

    def look(self) -> None:
        """See what is new, and tell it."""
        try:
            known = self._runner.run(self._seen())
        except (StoreError, NotFound):
            return  # locked for a moment, or not there yet: the next look sees it
        for record in self.records[known:]:
            for change in self._book.take(record):
                self._heard(change, self.names.get(record["writer"], ""))

    async def _seen(self) -> int:
        from perdure.client.client import Client
        from perdure.client.urls import store_of

        async with Client(store_of(self._url, read_only=True)) as client:
            run = client.get(*self._name)
            for worker in await client._store.workers():
                self.names[worker.info.id] = worker.info.name
            row = await run._row()
            self.holder = self.names.get(row.owner or "")
            self.status, self.stalled = row.status, row.stalled
            known = len(self.records)
            self.records = [record async for record in run.history()]
            return known

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Look until something holds, or the run has ended. Raises Trouble when it takes too long,
        or the run cannot go on."""
        late = time.monotonic() + PATIENCE
        while True:
            self.look()
            if holds() or self.ended:
                return
            if self.stalled is not None:
                raise trouble(f"the run is stalled: {self.stalled}")
            if time.monotonic() > late:
                raise trouble(f"{what} did not come within {PATIENCE} s")
            time.sleep(LOOK)

    def wait(self, seconds: float) -> None:
        """Look for so long."""
        late = time.monotonic() + seconds
        while (left := late - time.monotonic()) > 0:
            self.look()
            time.sleep(max(0.0, min(LOOK, left, late - time.monotonic())))

    def claim_after(self, number: int) -> tuple[str, datetime] | None:
        """Who took the run over in the records from this one on, and when."""
        for record in self.records[number:]:
            if record["do"] == "Claimed":
                return self.names.get(record["worker"], "another one"), record["time"]
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._runner.close()


def book_of(records: list[Mapping[str, Any]]) -> NodeBook:
    """The nodes of a run as of these records."""
    book = NodeBook()
    for record in records:
        book.take(record)
    return book
