"""What a wait's resolved spec says: until when, or for which signal and how long.

Strict, since a wait that was misread may last for ever (scenario 262): unknown keys, null from a
template and whatever is not plainly a duration or a time are errors, each saying what is right.
Times are µs since the epoch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final

from perdure.model.durations import microseconds
from perdure.model.errors import InvalidOptions
from perdure.model.guesses import did_you_mean
from perdure.model.moments import since_epoch

MAX_SIGNAL_NAME: Final = 256
WAIT_KEYS: Final = ("duration", "duration_seconds", "until")
SIGNAL_KEYS: Final = ("signal", "timeout", "timeout_seconds", "on_timeout")
#: What a wait for a signal may do when it has waited long enough; the first is what it does unless
#: it says otherwise.
ON_TIMEOUT: Final = ("fail", "continue")

_NUMBER: Final = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", re.ASCII)
_RFC_3339: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([-+])(\d\d):(\d\d))",
    re.ASCII,
)


class WaitSpecError(Exception):
    """A wait's spec that cannot be obeyed; the text says what is wrong with it."""


def wake_time(spec: Any, now: int) -> int:
    """When a WAIT with this spec ends. Raises WaitSpecError."""
    spec = _checked(spec, WAIT_KEYS)
    if "until" in spec:
        return _time(spec["until"])
    duration = _duration(spec, "duration")
    if duration is None:
        raise WaitSpecError('a WAIT says "duration", "duration_seconds" or "until"')
    return now + duration


def awaited(spec: Any, now: int) -> tuple[str, int | None]:
    """The signal that a WAIT_FOR_SIGNAL with this spec awaits, and when it gives up (None = it
    does not). Raises WaitSpecError."""
    spec = _checked(spec, SIGNAL_KEYS)
    if "signal" not in spec:
        raise WaitSpecError('a WAIT_FOR_SIGNAL says the "signal" it waits for')
    name = spec["signal"]
    if not isinstance(name, str) or not 0 < len(name) <= MAX_SIGNAL_NAME:
        raise WaitSpecError(
            f"signal must be a name of 1 to {MAX_SIGNAL_NAME} characters, not {_shown(name)}"
        )
    on_timeout = spec.get("on_timeout", "fail")
    if on_timeout not in ON_TIMEOUT:
        raise WaitSpecError(f'on_timeout must be "fail" or "continue", not {_shown(on_timeout)}')
    timeout = _duration(spec, "timeout")
    return name, now + timeout if timeout else None


def _checked(spec: Any, keys: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(spec, dict):
        raise WaitSpecError(f"invalid wait spec: it must be an object, not {_shown(spec)}")
    for key in spec:
        if key not in keys:
            raise WaitSpecError(
                f'invalid wait spec: unknown key "{key}"; {did_you_mean(key, keys)}'
            )
    return spec


def _duration(spec: Mapping[str, Any], key: str) -> int | None:
    """The duration under `key`, or in seconds under `key`_seconds; None when neither is there."""
    seconds = f"{key}_seconds"
    if seconds not in spec:
        return _microseconds(spec[key], key, units=True) if key in spec else None
    if key in spec:
        raise WaitSpecError(f'"{key}" and "{seconds}" both say how long: take one out')
    return _microseconds(spec[seconds], seconds, units=False)


def _microseconds(value: Any, key: str, *, units: bool) -> int:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value)
    wrong = WaitSpecError(f"{key} must be a non-negative number, not {_shown(value)}")
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise wrong
    if isinstance(value, str) and not units:
        raise wrong
    try:
        return microseconds(value, key)
    except InvalidOptions as error:
        if isinstance(value, str):
            raise WaitSpecError(str(error)) from error
        raise wrong from error


def _time(value: Any) -> int:
    """An RFC 3339 time, never earlier than it says: what is finer than a µs is rounded up."""
    match = _RFC_3339.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise WaitSpecError(
            "until must be a time in RFC 3339 with a zone, such as 2030-01-31T12:00:00Z, "
            f"not {_shown(value)}"
        )
    *parts, fraction, sign, hours, minutes = match.groups()
    digits = (fraction or "").ljust(6, "0")
    try:
        zone = UTC
        if sign is not None:
            if int(hours) > 23 or int(minutes) > 59:
                raise ValueError("there is no such zone")
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            zone = timezone(offset if sign == "+" else -offset)
        whole = since_epoch(datetime(*map(int, parts), tzinfo=zone))  # type: ignore[misc,arg-type]
    except (ValueError, OverflowError) as error:
        raise WaitSpecError(f"until is no time ({error}): {_shown(value)}") from error
    return whole + int(digits[:6]) + (digits[6:].strip("0") != "")


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
