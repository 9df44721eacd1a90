"""Checks of text: patterns and formats, all in time linear in the text.

Patterns have RE2's syntax and are the ones that `matches()` has in templates: Python's own may
take for ever on a short text. They are looked for anywhere in the text, as JSON Schema says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Final

from perdure.expr.budget import DEFAULT
from perdure.expr.patterns.matching import MAX_SUBJECT, compiled

Check = Callable[[str], bool]

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[-+]([01]\d|2[0-3]):[0-5]\d)"
_CLOCK: Final = re.compile(_TIME, re.ASCII)
_MOMENT: Final = re.compile(rf"(\d{{4}}-\d\d-\d\d)[Tt ]{_TIME}", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_LABEL: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"\\^`{|}]*")
_DURATION: Final = re.compile(
    r"P(?=[\dT])(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?)", re.ASCII
)


def pattern_check(pattern: str) -> Check:
    """Whether a text has the pattern in it. Raises Fault for what is no pattern."""
    found = compiled(pattern)

    def check(text: str) -> bool:
        if len(text) > MAX_SUBJECT:
            return False
        env: list[Any] = [{}, DEFAULT.steps, DEFAULT.size]
        return found.search(env, text)

    return check


def _is_date(text: str) -> bool:
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_moment(text: str) -> bool:
    found = _MOMENT.fullmatch(text)
    return found is not None and _is_date(found[1])


def _is_email(text: str) -> bool:
    name, at, host = text.rpartition("@")
    plain = name.isprintable() and not any(sign in name for sign in ' @"(),:;<>[\\]')
    dots = name.startswith(".") or name.endswith(".") or ".." in name
    return bool(name and at) and plain and not dots and len(name) <= 64 and _is_host(host)


def _is_host(text: str) -> bool:
    labels = text.removesuffix(".").split(".") if len(text) <= 254 else [""]
    return all(_LABEL.fullmatch(label) for label in labels)


def _is_address(kind: Callable[[str], object]) -> Check:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return "%" not in text

    return check


def _fits(pattern: re.Pattern[str]) -> Check:
    return lambda text: pattern.fullmatch(text) is not None


#: By the name in a schema: what such a text is called, and the check.
FORMATS: Final[Mapping[str, tuple[str, Check]]] = {
    "date-time": ('a time with its zone, such as "2025-06-01T12:00:00Z"', _is_moment),
    "date": ('a date, such as "2025-06-01"', _is_date),
    "time": ('a time of day with its zone, such as "12:00:00Z"', _fits(_CLOCK)),
    "duration": ('a duration, such as "PT5M"', _fits(_DURATION)),
    "email": ("an e-mail address", _is_email),
    "hostname": ("the name of a host", _is_host),
    "ipv4": ("an IPv4 address", _is_address(IPv4Address)),
    "ipv6": ("an IPv6 address", _is_address(IPv6Address)),
    "uri": ("a whole URI", _fits(_URI)),
    "uuid": ("a UUID", _fits(_UUID)),
}
