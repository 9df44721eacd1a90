"""Unwritten: rows that the store can never take, and the message that is to blame for one.

Nothing of such a row is durable: the run is let go, and loaded again from what is. Where the row
had applied messages, each then gets a row of its own; the one whose row fails again is refused,
with the error as the reason, and those after it have their turn. Kept in memory only: a process
that does not know it yet finds it out in the same way.
"""

from __future__ import annotations


class Unwritten:
    """By run: messages that can never be recorded, each with the error."""

    __slots__ = ("_runs",)

    def __init__(self) -> None:
        self._runs: dict[bytes, dict[int, str]] = {}

    def one_by_one(self, key: bytes) -> bool:
        """Whether each event of this run is to have a row of its own."""
        return key in self._runs

    def why(self, key: bytes, n: int) -> str | None:
        """Why this message of the run is to be refused."""
        return self._runs[key].get(n) if key in self._runs else None

    def blame(self, key: bytes, before: int, last: int, error: Exception) -> bool:
        """A row that applied the messages after `before` up to `last` can never be written.
        Whether to load the run again, since it would decide otherwise then."""
        if last == before:
            return False  # it was no message's doing
        refused = self._runs.get(key)
        if refused is None:
            self._runs[key] = {}
            return True
        if last - before > 1 or last in refused:
            return False
        refused[last] = f"it could never be recorded: {error}"
        return True

    def forget(self, key: bytes) -> None:
        """The run has ended, or left this process."""
        self._runs.pop(key, None)
