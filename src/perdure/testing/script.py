"""Sent: what is told to a run in a test, and when."""

from __future__ import annotations

from typing import Any, Final, Generic, TypeVar

from perdure.flow.signal import Channel, Signal
from perdure.model.duration_forms import Duration
from perdure.model.durations import microseconds
from perdure.model.errors import InvalidRequest

T = TypeVar("T")

_MAILBOXES: Final = (Signal, Channel)


class Sent(Generic[T]):
    """A value for a Signal or Channel, so long after the start of the run."""

    __slots__ = ("at", "to", "value")

    def __init__(self, at: Duration, to: Signal[T] | Channel[T], value: T) -> None:
        if not isinstance(to, _MAILBOXES):
            raise InvalidRequest(f"Sent to {to!r}: give it a Signal or a Channel")
        #: In µs.
        self.at = microseconds(at, "at")
        self.to: Any = to
        self.value = value

    def __repr__(self) -> str:
        return f"Sent(at={self.at / 1_000_000:g} s, {self.to!r}, {self.value!r})"
