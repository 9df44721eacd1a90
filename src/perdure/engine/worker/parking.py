"""Parking: runs that only wait leave memory; a row says when they are next due.

A run at rest whose next time is far off (or that has none) is let go once it has rested for
`after`: it keeps no owner and no memory, and a message makes it due at once. The store lets it go
only if nothing came meanwhile; until it has answered, whatever reaches the run waits. When many
runs are in memory, those at rest are let go without the wait.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from perdure.engine.runs.coding import is_interrupted
from perdure.engine.runs.delays import begins_at
from perdure.engine.runs.leaving import load_again
from perdure.engine.runs.reading import fetch_mail
from perdure.model.durations import SECOND
from perdure.model.errors import StoreError
from perdure.stores.rows import NEVER, Park

if TYPE_CHECKING:
    from perdure.engine.runs.live_run import LiveRun
    from perdure.engine.worker.shell import Shell

_log = logging.getLogger("perdure.engine")

#: Runs let go in one transaction.
BATCH: Final = 256
#: Runs in memory from which on those at rest are let go at once.
CROWDED: Final = 9_000


class Parking:
    """`after` in seconds."""

    def __init__(self, shell: Shell, after: float) -> None:
        self._shell = shell
        self._after = after
        #: Of runs at rest: the row at which they came to rest, and when that was seen.
        self._resting: dict[bytes, tuple[int, float]] = {}
        self._busy = False

    def look(self) -> None:
        """See who rests, and let go whoever has rested long enough."""
        if self._busy or not self._shell.live or self._shell.stopping:
            return
        crowded = len(self._shell.live) >= CROWDED
        chosen = self._rested(0.0 if crowded else self._after)
        if chosen:
            self._busy = True
            self._shell.tasks.spawn(self._let_go(chosen))

    def _rested(self, after: float) -> list[LiveRun]:
        """Those that have been at rest for so long, longest first, with nothing due soon."""
        clock = self._shell.clock
        now, soon = clock.monotonic(), clock.now() + int(self._after * SECOND)
        before, self._resting = self._resting, {}
        chosen: list[tuple[float, LiveRun]] = []
        for key, live in self._shell.live.items():
            if not live.at_rest:
                continue
            seq, since = before.get(key, (-1, now))
            if seq != live.seq:
                since = now
            self._resting[key] = (live.seq, since)
            if now - since >= after and (_next_time(live) or 0) > soon:
                chosen.append((since, live))
        chosen.sort(key=lambda one: one[0])
        return [live for _, live in chosen]

    async def let_go(self, live: LiveRun) -> None:
        """Its owners keep dying. If it only waits it is not the reason: it is not held here when
        the run that is comes next, so that the blame is exact."""
        due = _next_time(live) if live.at_rest else None
        if due is not None and due > self._shell.clock.now():
            await self._park([live])

    async def let_go_all(self) -> None:
        """The engine stops: whoever rests is due when its own time comes, not before."""
        await self._let_go([live for live in self._shell.live.values() if live.at_rest])

    def record_begun(self) -> None:
        """The engine stops: where an attempt had begun whose time is still to come by the clock,
        which was set back since, the journal has to say that somebody had it."""
        now = self._shell.clock.now()
        for live in list(self._shell.live.values()):
            if not live.dead and getattr(live.machine, "undoes", False) and _begun_early(live, now):
                load_again(self._shell, live)

    async def _let_go(self, chosen: list[LiveRun]) -> None:
        try:
            for start in range(0, len(chosen), BATCH):
                await self._park(chosen[start : start + BATCH])
        finally:
            self._busy = False

    async def _park(self, batch: list[LiveRun]) -> None:
        shell = self._shell
        times = [(live, _next_time(live)) for live in batch if live.at_rest]
        batch = [live for live, due in times if due is not None]
        parks = [Park(run.key, run.epoch, run.read, due) for run, due in times if due is not None]
        for live in batch:
            live.parking = True
        try:
            answers: Iterable[bool | None] = await shell.store.park(shell.worker, parks)
        except StoreError as error:
            # Whether they were let go is not known: the next beat settles it.
            _log.warning("%d run(s) at rest were dropped: %s", len(batch), error)
            answers = [None] * len(batch)
        except Exception:  # as if it were not known: a run must not be left between two states
            _log.exception("%d run(s) at rest were dropped", len(batch))
            answers = [None] * len(batch)
        for live, answer in zip(batch, answers, strict=True):
            self._answered(live, answer)

    def _answered(self, live: LiveRun, parked: bool | None) -> None:
        live.parking = False
        if live.dead:
            return
        if parked is False:
            fetch_mail(self._shell, live)
            live.pump()
            return
        self._resting.pop(live.key, None)
        came = bool(live.inbox or live.lacks_mail or live.work.orders)
        self._shell.drop(live)
        if came:  # it came after the store had let the run go, and made it due
            self._shell.claims.look()


def _begun_early(live: LiveRun, now: int) -> bool:
    return any(
        state.status == "pending" and state.not_before > now and live.timers.due(node) is None
        for node, state in live.run.nodes.items()
    )


def _next_time(live: LiveRun) -> int | None:
    """When a run at rest is due next by itself, NEVER if it only waits to be told something. None
    where an attempt should be under way and is not, or the code stands half-way: such a run must
    not be let go."""
    if is_interrupted(live.machine):
        return None
    run = live.run
    # One that is to end already hears no deadline any more.
    due = NEVER if run.deadline is None or run.stopping is not None else run.deadline
    if (begin := begins_at(live)) is not None:
        due = min(due, begin)
    for node, state in run.nodes.items():
        if state.status == "waiting":
            due = min(due, NEVER if state.wake_at is None else state.wake_at)
        elif state.status == "pending":
            begins = live.timers.due(node)
            if begins is not None:
                due = min(due, begins)
            elif not live.work.held and state.child is None:
                return None
    return due
