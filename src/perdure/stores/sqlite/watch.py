"""Watch: noticing that another process wrote to the file, by asking for its data version.

The version is a number in shared memory that every connection sees change when another one
commits; asking costs microseconds and reads nothing of the database. It is asked often after a
change and less often when nothing happens, but always so often that what another process sends
is there within a moment: half of the longest pause, as a rule.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

#: Between two looks, in seconds: right after a change, and at most.
SOONEST: Final = 0.02
LATEST: Final = 0.06
_SLOWER: Final = 1.5


class Watch:
    """Looks from its making until `close`. `ask` answers None when it cannot tell now."""

    def __init__(self, ask: Callable[[], int | None], changed: Callable[[], None]) -> None:
        self._ask = ask
        self._changed = changed
        self._loop = asyncio.get_running_loop()
        self._seen = ask()
        self._pause = SOONEST
        self._timer = self._loop.call_later(self._pause, self._look)

    def close(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _look(self) -> None:
        found = self._ask()
        self._pause = min(self._pause * _SLOWER, LATEST)
        if found is not None and found != self._seen:
            self._seen = found
            self._pause = SOONEST
            self._changed()
        self._timer = self._loop.call_later(self._pause, self._look)
