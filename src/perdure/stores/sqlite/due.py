"""Due: knowing that no run is due before some time, so that a look which would find nothing asks
nothing.

What a look found holds until then, as long as nobody wrote: this process nothing that can make a
run due, and another process nothing at all (the file's data version). It is believed for a few
seconds only: the sweep that finds whatever a hint missed is the same question, asked anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from perdure.stores.answers import Claim
from perdure.stores.sqlite.claims import claim_due
from perdure.stores.sqlite.driver import Connection, data_version
from perdure.stores.sqlite.queries import query

#: How long an answer is believed, in µs.
BELIEVED: Final = 5_000_000

Names = tuple[str, ...]


class Look(msgspec.Struct, frozen=True):
    """What a look at the runs of some definitions found: the claims it made; or when the first
    run is due (None: none ever), as of a data version and a time."""

    claims: list[Claim]
    at: int = 0
    version: int = 0
    first: int | None = None


def look(db: Connection, worker: str, names: Names, limit: int, now: int) -> Look:
    """Claim what is due, or say when something will be."""
    # The version before the rows: what is written in between is news at the next look.
    version = data_version(db)
    (first,) = db.execute(query("first_due"), {"names": _listed(names)}).fetchone()
    if first is not None and first <= now:
        return Look(claim_due(db, worker, names, limit, now), now, version, now)
    return Look([], now, version, first)


class Due:
    """What the last looks found, by the definitions they were for. On the loop's thread."""

    __slots__ = ("_found", "changes")

    def __init__(self) -> None:
        #: Counts what this process wrote, or is about to, that may make a run due.
        self.changes = 0
        self._found: dict[Names, Look] = {}

    def changed(self) -> None:
        """This process writes something that may make a run due."""
        self.changes += 1
        self._found.clear()

    def none(self, names: Names, version: int | None, now: int) -> bool:
        """Whether surely no run of these definitions is due. `version` None: it is not known
        whether others wrote."""
        found = self._found.get(names)
        if found is None or found.version != version:
            return False
        until = found.at + BELIEVED
        if found.first is not None:
            until = min(until, found.first)
        # A clock that was set back says nothing about what it once showed.
        return found.at <= now < until

    def learn(self, names: Names, changes: int, found: Look) -> None:
        """A look, begun when there had been so many changes, found nothing that is due."""
        if changes == self.changes and not found.claims:
            self._found[names] = found


def _listed(names: Sequence[str]) -> str:
    return msgspec.json.encode(names).decode()
