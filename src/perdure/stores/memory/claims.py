"""Who works on which run, in memory: what is due is claimed, given back, and freed of workers that
are gone.

As the SQL stores have it in `claims` and `workers`; leases are the store's.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from perdure.model.errors import RunActive, StoreError
from perdure.stores.answers import Claim
from perdure.stores.memory.places import Places
from perdure.stores.memory.run import MemoryRun
from perdure.stores.port import CRASH_LIMIT, GIVEN_BACK_FOR, LONE_CRASHES
from perdure.stores.takeover import crash_reason


class Claims:
    """`moved`: is told where a run may have become due."""

    __slots__ = ("_moved", "_places", "_runs")

    def __init__(
        self,
        runs: Mapping[bytes, MemoryRun],
        places: Places,
        moved: Callable[[bytes, MemoryRun], None],
    ) -> None:
        self._runs = runs
        self._places = places
        self._moved = moved

    def take_due(
        self, worker: str, definitions: Sequence[str], limit: int, now: int
    ) -> list[Claim]:
        """See Store.claim_runs."""
        names = dict.fromkeys(definitions)
        claims: list[Claim] = []
        while len(claims) < limit and (key := self._places.earliest(names, now)):
            run = self._runs[key]
            crashes = run.in_a_row()
            if crashes > CRASH_LIMIT and run.stalled is None:
                run.stop_claims(crash_reason(crashes), now)
                self._places.put(key, run)
                continue
            if crashes >= LONE_CRASHES and claims:
                break
            claims.append(self._take(worker, run))
            if crashes >= LONE_CRASHES:
                break
        return claims

    def take_finished(self, worker: str, run: MemoryRun) -> Claim:
        """See Store.claim_finished."""
        named = f"run {run.new.id!r} of {run.new.definition}"
        if run.status == "running":
            raise RunActive(f"{named} has not ended: cancel it first")
        if run.owner is not None:
            raise StoreError(f"{named} is being retried by somebody else")
        return self._take(worker, run)

    def _take(self, worker: str, run: MemoryRun) -> Claim:
        run.owner, run.stalled = worker, None
        run.epoch += 1
        key = run.new.key
        self._places.put(key, run)
        mail = len(run.mailbox)
        return Claim(key, run.new.definition, run.hash, run.epoch, run.in_a_row(), mail)

    def give_back(
        self, worker: str, claim: Claim, stalled: str | None, until: int, now: int
    ) -> None:
        """See Store.give_back."""
        run = self._runs.get(claim.key)
        if run is None or run.owner != worker or run.epoch != claim.epoch:
            return
        run.let_go(until if stalled is not None else now + GIVEN_BACK_FOR, stalled)
        if stalled is not None:
            run.end_stall(claim.mail, now)
        self._moved(claim.key, run)

    def unstall(self, definitions: Sequence[str], now: int) -> int:
        """See Store.unstall."""
        names, count = set(definitions), 0
        for key, run in self._runs.items():
            if (
                run.stalled is not None
                and run.new.definition in names
                and run.in_a_row() <= CRASH_LIMIT
            ):
                run.let_go(now)
                self._moved(key, run)
                count += 1
        return count

    def take_over(self, alive: Container[str], worker: str, now: int) -> int:
        """Free what is held by workers that are not alive, on behalf of this one; how many runs."""
        freed = 0
        for owner in self._places.owners():
            if owner not in alive:
                for key, run in list(self._places.held(owner).items()):
                    run.take_over(worker, now)
                    self._moved(key, run)
                    freed += 1
        return freed

    def leave(self, worker: str, now: int) -> None:
        """The worker ends: what it held is due at once."""
        for key, run in list(self._places.held(worker).items()):
            run.let_go(now, run.stalled)
            self._moved(key, run)
