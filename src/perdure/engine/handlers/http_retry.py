"""What an unexpected answer says about asking again: whether time may heal it, and when.

The delay is the server's wish; the kernel holds it to the limits of the node's retry policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from perdure.model.durations import SECOND

#: The client errors that time can heal, and the server errors that it cannot.
HEALING: Final = frozenset({408, 425, 429})
LASTING: Final = frozenset({501, 505})


def heals(status: int) -> bool:
    """Whether the same request may well succeed later."""
    return status in HEALING or (status >= 500 and status not in LASTING)


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """Seconds from now until the server wants to be asked again; None = it does not say.

    `Retry-After` holds seconds, or a date, which is measured from the answer's own `Date` where
    there is one: the two clocks need not agree. `now`: µs since the epoch. A date that is past is
    0; what cannot be read is None.
    """
    said = headers.get("Retry-After", "").strip()
    if said.isascii() and said.isdigit():
        return int(said) if len(said) < 10 else None
    due = _date(said)
    if due is None:
        return None
    answered = _date(headers.get("Date", "").strip())
    begin = now / SECOND if answered is None else answered.timestamp()
    return max(0.0, due.timestamp() - begin)


def _date(text: str) -> datetime | None:
    """An HTTP date, in any of its three forms."""
    if not text or len(text) > 64:
        return None
    try:
        date = parsedate_to_datetime(text)
        return date.replace(tzinfo=UTC) if date.tzinfo is None else date.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
