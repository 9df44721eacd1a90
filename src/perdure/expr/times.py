"""Timestamps and durations: reading, writing, arithmetic, and the parts a calendar shows.

All in whole nanoseconds; ranges are those of CEL (years 1 to 9999, about 10,000 years either way).
Nothing here reads a clock.
"""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable
from typing import Any

from perdure.expr.errors import Fault
from perdure.expr.values import (
    DURATION_MAX,
    INT_MAX,
    INT_MIN,
    NANOS,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    Duration,
    Timestamp,
    kind_of,
)
from perdure.model.moments import EPOCH

_MAX_TEXT = 100
_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))",
    re.ASCII,
)
_UNITS = {
    "h": 3600 * NANOS, "m": 60 * NANOS, "s": NANOS, "ms": 1_000_000, "us": 1_000, "µs": 1_000,
    "ns": 1,
}  # fmt: skip
_SPAN = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|ms|s|m|h)", re.ASCII)
_OFFSET = re.compile(r"([+-]?)(\d{1,2}):(\d\d)", re.ASCII)
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+)*", re.ASCII)
_EPOCH_DAY = EPOCH.toordinal()


def timestamp(nanos: int) -> Timestamp:
    """A timestamp, or a fault if it lies outside the years 1 to 9999."""
    if TIMESTAMP_MIN <= nanos <= TIMESTAMP_MAX:
        return Timestamp(nanos)
    raise Fault("the timestamp lies outside the years 1 to 9999")


def duration(nanos: int) -> Duration:
    """A duration, or a fault if it is longer than CEL allows."""
    if -DURATION_MAX <= nanos <= DURATION_MAX:
        return Duration(nanos)
    raise Fault("the duration is longer than 315,576,000,000 seconds")


def parse_timestamp(text: str) -> Timestamp:
    """An RFC 3339 text as a timestamp."""
    found = _RFC3339.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if found is None:
        raise Fault("this string is not a timestamp such as 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, sign, off_hours, off_minutes = found.groups()[6:]
    if hour > 23 or minute > 59 or second > 59 or int(off_hours or 0) > 23:
        raise Fault("this timestamp holds a time that no clock shows")
    try:
        days = datetime.date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        raise Fault("this timestamp holds a day that no calendar has") from None
    seconds = days * 86_400 + hour * 3600 + minute * 60 + second
    if sign:
        offset = int(off_hours) * 3600 + int(off_minutes) * 60
        seconds += offset if sign == "-" else -offset
    return timestamp(seconds * NANOS + int(((fraction or "0") + "0" * 9)[:9]))


def format_timestamp(value: Timestamp) -> str:
    """RFC 3339 in UTC, with 0, 3, 6 or 9 digits of a second."""
    seconds, nanos = divmod(value.nanos, NANOS)
    moment = EPOCH + datetime.timedelta(seconds=seconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}".rjust(19, "0") + _fraction(nanos) + "Z"


def _fraction(nanos: int) -> str:
    if not nanos:
        return ""
    digits = f"{nanos:09d}"
    if digits.endswith("000000"):
        return f".{digits[:3]}"
    return f".{digits[:6]}" if digits.endswith("000") else f".{digits}"


def parse_duration(text: str) -> Duration:
    """A text such as `1h30m` or `-1.5s` as a duration."""
    if len(text) > _MAX_TEXT:
        raise Fault("this string is too long to be a duration")
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest):
        found = _SPAN.match(rest, at)
        if found is None or not (found[1] or found[2]) or len(found[0]) > 40:
            break
        unit = _UNITS[found[3]]
        fraction = found[2] or ""
        total += int(found[1] or 0) * unit
        total += int(fraction or 0) * unit // 10 ** len(fraction)
        at = found.end()
    if at < len(rest) or not rest:
        raise Fault("this string is not a duration such as 90s, 1h30m or 1.5s")
    return duration(-total if text[0] == "-" else total)


def format_duration(value: Duration) -> str:
    """Seconds with 0, 3, 6 or 9 digits: `5400s`, `1.500s`."""
    seconds, nanos = divmod(abs(value.nanos), NANOS)
    return f"{'-' if value.nanos < 0 else ''}{seconds}{_fraction(nanos)}s"


def time_sum(op: str, a: Any, b: Any) -> Timestamp | Duration | None:
    """`a + b` or `a - b` of times, None where CEL defines none."""
    kinds = (type(a), type(b))
    if kinds == (Duration, Duration):
        return duration(a.nanos + b.nanos if op == "+" else a.nanos - b.nanos)
    if kinds == (Timestamp, Duration):
        return timestamp(a.nanos + b.nanos if op == "+" else a.nanos - b.nanos)
    if kinds == (Duration, Timestamp) and op == "+":
        return timestamp(a.nanos + b.nanos)
    if kinds == (Timestamp, Timestamp) and op == "-":
        if INT_MIN <= a.nanos - b.nanos <= INT_MAX:
            return Duration(a.nanos - b.nanos)
        raise Fault("these timestamps are too far apart: the difference does not fit 64 bits")
    return None


def _zone(name: str) -> datetime.tzinfo:
    if not name or name == "UTC":
        return datetime.UTC
    found = _OFFSET.fullmatch(name)
    if found is not None and int(found[2]) <= 23 and int(found[3]) <= 59:
        delta = datetime.timedelta(hours=int(found[2]), minutes=int(found[3]))
        return datetime.timezone(-delta if found[1] == "-" else delta)
    if _ZONE.fullmatch(name) and len(name) < 64:
        try:
            return zoneinfo.ZoneInfo(name)
        except (ValueError, LookupError, OSError):
            pass
    raise Fault("no such time zone; write a name such as Europe/Paris or an offset such as +02:00")


_PARTS: dict[str, Callable[[datetime.datetime], int]] = {
    "getFullYear": lambda t: t.year,
    "getMonth": lambda t: t.month - 1,
    "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1,
    "getDayOfWeek": lambda t: t.isoweekday() % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getHours": lambda t: t.hour,
    "getMinutes": lambda t: t.minute,
    "getSeconds": lambda t: t.second,
    "getMilliseconds": lambda t: t.microsecond // 1000,
}
_SPANS = {"getHours": 3600 * NANOS, "getMinutes": 60 * NANOS, "getSeconds": NANOS}


def part_of(name: str) -> Callable[..., int]:
    """The function behind a selector such as getHours(), of timestamps and durations."""
    read = _PARTS[name]

    def part(value: Any, *zone: Any) -> int:
        if type(value) is Timestamp and (not zone or type(zone[0]) is str):
            moment = EPOCH + datetime.timedelta(microseconds=value.nanos // 1000)
            try:
                return read(moment.astimezone(_zone(zone[0])) if zone else moment)
            except OverflowError:
                raise Fault("in this time zone the year is none of 1 to 9999") from None
        if type(value) is Duration and not zone and name in _SPANS:
            whole = abs(value.nanos) // _SPANS[name]
            return -whole if value.nanos < 0 else whole
        if type(value) is Duration and not zone and name == "getMilliseconds":
            whole = abs(value.nanos) % NANOS // 1_000_000
            return -whole if value.nanos < 0 else whole
        raise Fault(f"no such overload: {kind_of(value)}.{name}()")

    return part


PARTS = tuple(_PARTS)
