"""Durations: what users write, kept as whole microseconds.

`timedelta`, seconds, or text such as "30s", "5m", "72h", "7d", "1h30m", "250ms". Nothing
negative, nothing that is not finite; longer than a store can hold is clamped (D-12).
"""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

from perdure.model.duration_forms import Duration
from perdure.model.errors import InvalidOptions

SECOND: Final = 1_000_000
#: About 29,000 years: added to any time of this age it still fits a signed 64-bit integer.
MAX_DURATION: Final = 2**63 // 10
NEVER: Final = 2**63 - 1

_UNITS: Final = {
    "us": 1,
    "ms": 1_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3_600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 7 * 86_400 * SECOND,
}
_PART = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)(us|ms|s|m|h|d|w)", re.ASCII)


def microseconds(duration: Duration, what: str = "duration") -> int:
    """The duration in microseconds, ≥ 0, clamped to MAX_DURATION. Raises InvalidOptions."""
    value = _signed(duration, what)
    if value < 0:
        raise InvalidOptions(f"{what} {duration!r} is negative: use 0 or more")
    return value


def remaining(duration: Duration, what: str = "duration") -> int:
    """The same of a time that is left, as code computes it: 0 where it is over already."""
    return max(_signed(duration, what), 0)


def _signed(duration: Duration, what: str) -> int:
    if isinstance(duration, str):
        return _from_text(duration, what)
    if isinstance(duration, timedelta):
        value: float = duration // timedelta(microseconds=1)
    elif isinstance(duration, bool) or not isinstance(duration, (int, float)):
        raise InvalidOptions(
            f"{what} {duration!r} is not a duration: use seconds, a timedelta or text like '30s'"
        )
    elif isinstance(duration, float) and not math.isfinite(duration):
        raise InvalidOptions(f"{what} {duration!r} is not finite")
    else:
        value = duration * SECOND
    # However little below nothing: it must not be rounded to nothing.
    return round(min(value, MAX_DURATION)) if value >= 0 else -1


def _from_text(text: str, what: str) -> int:
    total, position = 0.0, 0
    stripped = text.strip()
    while match := _PART.match(stripped, position):
        total += float(match[1]) * _UNITS[match[2]]
        position = match.end()
    if position == 0 or position != len(stripped):
        raise InvalidOptions(
            f"{what} {text!r} is not a duration: write a number and a unit, "
            "such as '30s', '5m', '72h', '7d' (units: us ms s m h d w)"
        )
    return round(min(total, MAX_DURATION))
