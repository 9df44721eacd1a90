"""Moments: times as they are recorded, in µs since the epoch, as Python's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment(microseconds: int) -> datetime:
    """The time so many µs since the epoch: aware, UTC."""
    return EPOCH + timedelta(microseconds=microseconds)
