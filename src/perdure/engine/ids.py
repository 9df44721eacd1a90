"""UUIDv7 ids that grow with every call within a process: sorting them sorts by age (G-103)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final
from weakref import WeakSet

_TAIL: Final = 1 << 48
#: Bytes of chance that a millisecond takes, and for how many of them it is fetched at a time:
#: asking the system costs more than a step.
_CHANCE: Final = 10
_AHEAD: Final = 64

_MADE: Final[WeakSet[Ids]] = WeakSet()


class Ids:
    """Makes ids. Within a millisecond a counter grows from a random start; when the clock stands
    still or goes back the counter goes on, so order holds whatever the clock does."""

    __slots__ = (
        "__weakref__", "_chance", "_count", "_head", "_millisecond", "_now", "_prefix",
    )  # fmt: skip

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._millisecond = -1
        self._count = _TAIL
        #: What the ids of this millisecond begin with: as text, and as bytes.
        self._prefix = ""
        self._head = b""
        #: Fetched and not used.
        self._chance = b""
        _MADE.add(self)

    def forked(self) -> None:
        """This is another process than the one it was made in, which goes on from the same
        place: here it begins anew."""
        self._millisecond, self._count, self._chance = -1, _TAIL, b""

    def text(self) -> str:
        """A new id as 36 characters."""
        millisecond = self._now() // 1000
        if millisecond > self._millisecond or self._count >= _TAIL - 1:
            self._next_of(millisecond)
        else:
            self._count += 1
        # A format of a number costs ten times as much.
        return self._prefix + self._count.to_bytes(6, "big").hex()

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
        chance = self._drawn()
        # The top bit of the counter starts at 0: at least 2^47 ids fit in one millisecond.
        self._count = chance & (1 << 47) - 1
        head = f"{millisecond:012x}"
        group, variant = chance >> 47 & 0xFFF, 0x8000 | chance >> 59 & 0x3FFF
        self._prefix = f"{head[:8]}-{head[8:]}-7{group:03x}-{variant:04x}-"
        self._head = bytes.fromhex(self._prefix.replace("-", ""))

    def _drawn(self) -> int:
        """80 bits of chance."""
        if not self._chance:
            self._chance = os.urandom(_CHANCE * _AHEAD)
        drawn, self._chance = self._chance[:_CHANCE], self._chance[_CHANCE:]
        return int.from_bytes(drawn, "big")


def _forked() -> None:
    for ids in list(_MADE):
        ids.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
