"""Overdue: the finished runs whose time is over, found for purging.

One walk over all runs finds them, and is remembered until they are gone: a purge of many, a
hundred at a time, does not walk anew for each hundred.
"""

from __future__ import annotations

from collections.abc import Mapping

from perdure.stores.memory.run import MemoryRun
from perdure.stores.port import PURGE_AFTER
from perdure.stores.rows import NEVER


class Overdue:
    """Of the runs of a store, which it reads and never changes."""

    __slots__ = ("_found", "_runs")

    def __init__(self, runs: Mapping[bytes, MemoryRun]) -> None:
        self._runs = runs
        #: As the last walk saw it, those to go first last; each is looked at again before it goes.
        self._found: list[bytes] = []

    def first(self, now: int) -> bytes | None:
        """The run to be purged first; None if there is none. The caller takes it out."""
        if (key := self._known(now)) is not None:
            return key
        over = [(_purge_at(run), key) for key, run in self._runs.items() if _over(run, now)]
        self._found = [key for _, key in sorted(over, reverse=True)]
        return self._known(now)

    def _known(self, now: int) -> bytes | None:
        while self._found:
            key = self._found.pop()
            run = self._runs.get(key)
            if run is not None and _over(run, now):
                return key
        return None


def _over(run: MemoryRun, now: int) -> bool:
    return (
        run.status != "running"
        and run.owner is None
        and run.ended is not None
        and run.ended.at <= now - PURGE_AFTER
        and _purge_at(run) <= now
    )


def _purge_at(run: MemoryRun) -> int:
    return NEVER if run.finish is None else run.finish.purge_at
