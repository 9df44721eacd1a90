"""Bound: how long a caller of `run` waits, for its start and then for the end.

An engine asks its store again until that answers, however long that takes, and the start with it.
Whoever has said how long to wait hears by then that nobody knows, instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from perdure.model.duration_forms import Duration
from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import StoreError

T = TypeVar("T")

#: Seconds that a start gets at least: a caller that waits for no end still wants it recorded.
LEAST: Final = 1.0


class Bound:
    """From now on, on the running loop. `seconds` is the whole of it."""

    __slots__ = ("_until", "seconds")

    def __init__(self, timeout: Duration) -> None:
        self.seconds = microseconds(timeout, "timeout") / SECOND
        self._until = asyncio.get_running_loop().time() + self.seconds

    def left(self) -> float:
        """Seconds that are left."""
        return max(self._until - asyncio.get_running_loop().time(), 0.0)

    async def started(self, start: Awaitable[T], name: str) -> T:
        """What a start gives. Raises StoreError where it has not by then."""
        try:
            async with asyncio.timeout(max(self.left(), LEAST)) as time:
                return await start
        except TimeoutError as error:
            if not time.expired():
                raise
            raise StoreError(
                f"whether {name} was started is not known: the store did not say so in time; "
                "start it again with this id and if_exists='join'"
            ) from error
