"""Where runs are to be found: the free ones by when they are due, the held ones by owner.

So that an engine that looks for work, or for what it holds, does not walk over ten thousand runs
that wait for a signal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from perdure.stores.memory.run import MemoryRun
from perdure.stores.rows import NEVER

_SLACK = 64


class _Free:
    """The free runs of one definition. `heap` may hold entries that are not so any more."""

    __slots__ = ("heap", "runs")

    def __init__(self) -> None:
        self.runs: dict[bytes, MemoryRun] = {}
        self.heap: list[tuple[int, bytes]] = []

    def put(self, key: bytes, run: MemoryRun) -> None:
        self.runs[key] = run
        if run.ready_at != NEVER:
            heappush(self.heap, (run.ready_at, key))
            if len(self.heap) > 2 * len(self.runs) + _SLACK:
                due = ((r.ready_at, k) for k, r in self.runs.items() if r.ready_at != NEVER)
                self.heap = list(due)
                heapify(self.heap)

    def earliest(self) -> tuple[int, bytes] | None:
        while self.heap:
            ready_at, key = self.heap[0]
            run = self.runs.get(key)
            if run is not None and run.ready_at == ready_at:
                return ready_at, key
            heappop(self.heap)
        return None


class Places:
    """Told of every change (`put`) and of every run that is forgotten (`remove`)."""

    __slots__ = ("_free", "_held")

    def __init__(self) -> None:
        self._free: dict[str, _Free] = {}
        self._held: defaultdict[str, dict[bytes, MemoryRun]] = defaultdict(dict)

    def put(self, key: bytes, run: MemoryRun) -> None:
        """The run's owner, status or time may be another than before."""
        owner, before = run.owner, run.listed
        if owner != before:
            if before is not None:
                del self._held[before][key]
            if owner is not None:
                self._held[owner][key] = run
            run.listed = owner
        free_now = owner is None and run.status == "running"
        if free_now and (run.stalled is None or run.ready_at != NEVER):
            free = self._free.get(run.new.definition)
            if free is None:
                free = self._free[run.new.definition] = _Free()
            free.put(key, run)
        elif self._free and (free := self._free.get(run.new.definition)):
            free.runs.pop(key, None)

    def hold(self, key: bytes, run: MemoryRun, owner: str) -> None:
        """A new run has this owner."""
        self._held[owner][key] = run
        run.listed = owner

    def remove(self, key: bytes, run: MemoryRun) -> None:
        """The run is forgotten."""
        if run.listed is not None:
            del self._held[run.listed][key]
        if free := self._free.get(run.new.definition):
            free.runs.pop(key, None)

    def owners(self) -> list[str]:
        """Who holds runs."""
        for owner in [owner for owner, runs in self._held.items() if not runs]:
            del self._held[owner]  # not each time that somebody's last run ends
        return list(self._held)

    def held(self, owner: str) -> dict[bytes, MemoryRun]:
        """The runs under this name; do not keep it over a change."""
        return self._held.get(owner, {})

    def earliest(self, definitions: Iterable[str], now: int) -> bytes | None:
        """The free run that has been due longest; of two of one time, the older."""
        found: tuple[int, bytes] | None = None
        for name in definitions:
            free = self._free.get(name)
            first = None if free is None else free.earliest()
            if first is not None and first[0] <= now and (found is None or first < found):
                found = first
        return None if found is None else found[1]
