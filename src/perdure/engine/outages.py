"""Outages: a store that is away is said to be so at once, then less and less often, and when it is
back. A line for every try would bury what else happens. Where it is not back in time, what it did
not take is named.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from perdure.model.errors import PayloadMissing, StoreError

T = TypeVar("T")

_log = logging.getLogger("perdure.engine")

#: Seconds from the first line to the second, doubled each time up to the most.
FIRST_PAUSE: Final = 2.0
LONGEST_PAUSE: Final = 300.0
#: Seconds after which somebody who failed and has not asked again is taken to be gone: tries are
#: never so far apart.
GIVEN_UP: Final = 60.0
#: Seconds between a try and the next, doubled each time up to the most.
FIRST_DELAY: Final = 0.05
LONGEST_DELAY: Final = 5.0
#: Runs that are named; of more it is only said how many there are.
NAMED: Final = 10
#: What runs in memory ask the store for, in words.
READING: Final = "reading what runs have recorded"


class Outages:
    """One worker's view of its store: who asks, and for whom it did not answer last. Over is an
    outage when it has answered everybody that it failed before."""

    __slots__ = ("_failing", "_next", "_now", "_pause", "_since")

    def __init__(self, now: Callable[[], float]) -> None:
        """`now`: seconds that only grow."""
        self._now = now
        #: Who was not answered, and when last.
        self._failing: dict[str, float] = {}
        self._since = self._next = 0.0
        self._pause = FIRST_PAUSE

    def note(self, asking: str, error: StoreError | None) -> None:
        """Whoever asks the store was answered (None) or not. `asking`: what for, in words."""
        if error is None:
            if self._failing:
                self._answered(asking)
            return
        now = self._now()
        self._forget(now)
        if not self._failing:
            self._since, self._pause = now, FIRST_PAUSE
            self._say(now, f"the store did not answer ({asking}: {error}); it is asked again")
        elif now >= self._next:
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
            away = now - self._since
            self._say(now, f"the store is away for {away:.0f} s now ({asking}: {error})")
        self._failing[asking] = now

    async def read(self, ask: Callable[[], Awaitable[T]]) -> T:
        """What the store answers, asked until it does. Raises PayloadMissing, and a refusal."""
        delay = FIRST_DELAY
        while True:
            try:
                answer = await ask()
            except PayloadMissing:
                raise
            except StoreError as error:
                self.note(READING, error)
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)
            else:
                self.note(READING, None)
                return answer

    def _forget(self, now: float) -> None:
        """Whoever has given up: a run that left memory does not read on."""
        self._failing = {one: at for one, at in self._failing.items() if now - at < GIVEN_UP}

    def _say(self, now: float, text: str) -> None:
        self._next = now + self._pause
        _log.warning("%s", text)

    def _answered(self, asking: str) -> None:
        now = self._now()
        self._failing.pop(asking, None)
        self._forget(now)
        if not self._failing:
            _log.warning("the store answers again, after %.1f s", now - self._since)


def unrecorded(runs: Sequence[str]) -> str:
    """What to say of runs whose last rows the store did not take before the engine had to go."""
    named = ", ".join(runs[:NAMED]) or "some start"
    more = f" and {len(runs) - NAMED} more" if len(runs) > NAMED else ""
    return (
        f"the store did not take the last rows of {named}{more}: what they say is not recorded, "
        "and happens again"
    )
