"""Moments: times as they are recorded, in µs since the epoch, as Python's own, and back. No number
between is a float: today's µs are more than one can tell apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def moment(microseconds: int) -> datetime:
    """The time so many µs since the epoch: aware, UTC."""
    return EPOCH + timedelta(microseconds=microseconds)


def since_epoch(time: datetime) -> int:
    """µs from the epoch to an aware time. Raises TypeError for a naive one."""
    return (time - EPOCH) // _MICROSECOND
