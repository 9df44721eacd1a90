"""UUIDv7 ids that grow with every call within a process: sorting them sorts by age (G-103)."""

from __future__ import annotations

import secrets
from collections.abc import Callable

_TAIL = 1 << 48


class Ids:
    """Makes ids. Within a millisecond a counter grows from a random start; when the clock stands
    still or goes back the counter goes on, so order holds whatever the clock does."""

    __slots__ = ("_count", "_head", "_millisecond", "_now", "_prefix")

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._millisecond = -1
        self._count = _TAIL
        #: What the ids of this millisecond begin with: as text, and as bytes.
        self._prefix = ""
        self._head = b""

    def text(self) -> str:
        """A new id as 36 characters."""
        millisecond = self._now() // 1000
        if millisecond > self._millisecond or self._count >= _TAIL - 1:
            self._next_of(millisecond)
        else:
            self._count += 1
        return f"{self._prefix}{self._count:012x}"

    def _next_of(self, millisecond: int) -> int:
        if millisecond > self._millisecond:
            self._renew(millisecond)
        elif self._count >= _TAIL - 1:
            self._renew(self._millisecond + 1)
        else:
            self._count += 1
        return self._count

    def key(self) -> bytes:
        """A new id as 16 bytes."""
        count = self._next_of(self._now() // 1000)
        return self._head + count.to_bytes(6, "big")

    def _renew(self, millisecond: int) -> None:
        self._millisecond = millisecond
        chance = secrets.randbits(47 + 12 + 14)
        # The top bit of the counter starts at 0: at least 2^47 ids fit in one millisecond.
        self._count = chance & (1 << 47) - 1
        head = f"{millisecond:012x}"
        group, variant = chance >> 47 & 0xFFF, 0x8000 | chance >> 59
        self._prefix = f"{head[:8]}-{head[8:]}-7{group:03x}-{variant:04x}-"
        self._head = bytes.fromhex(self._prefix.replace("-", ""))
