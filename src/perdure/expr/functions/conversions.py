"""Conversions between kinds, type(), dyn() and size().

No message repeats a value: it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from perdure.expr import times
from perdure.expr.budget import Env, take_size
from perdure.expr.errors import Fault
from perdure.expr.functions.function import of
from perdure.expr.values import (
    INT_MAX,
    INT_MIN,
    NANOS,
    UINT_MAX,
    Duration,
    Kind,
    Timestamp,
    Uint,
    kind_of,
)

_MAX_NUMBER = 1_000
_INT = re.compile(r"[+-]?[0-9]{1,30}")
_UINT = re.compile(r"[0-9]{1,30}")
_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)
_BOOLS = {
    "true": True, "True": True, "TRUE": True, "t": True, "1": True,
    "false": False, "False": False, "FALSE": False, "f": False, "0": False,
}  # fmt: skip


def to_int(value: Any) -> Any:
    """int(): of numbers (a double loses its fraction), strings, timestamps (seconds), bools."""
    kind = type(value)
    if kind is int:
        return value
    if kind is float:
        # The ends of the range are no int when they come from a double: they may be rounded.
        if not -(2.0**63) < value < 2.0**63:
            raise Fault("this double does not fit an int")
        return int(value)
    if kind is Uint:
        if value > INT_MAX:
            raise Fault("this uint does not fit an int")
        return int(value)
    if kind is str:
        if _INT.fullmatch(value) is None or not INT_MIN <= int(value) <= INT_MAX:
            raise Fault("this string is not an int of 64 bits")
        return int(value)
    if kind is Timestamp:
        return value.nanos // NANOS
    return int(value) if kind is bool else NotImplemented


def to_uint(value: Any) -> Any:
    """uint(): of numbers and strings that are not negative."""
    kind = type(value)
    if kind is Uint:
        return value
    if kind is float:
        if not 0.0 <= value < 2.0**64:
            raise Fault("this double does not fit a uint")
        return Uint(value)
    if kind is int:
        if value < 0:
            raise Fault("a negative int is no uint")
        return Uint(value)
    if kind is str:
        if _UINT.fullmatch(value) is None or int(value) > UINT_MAX:
            raise Fault("this string is not a uint of 64 bits")
        return Uint(value)
    return NotImplemented


def to_double(value: Any) -> Any:
    """double(): of numbers and strings."""
    kind = type(value)
    if kind is float:
        return value
    if kind is int or kind is Uint:
        return float(value)
    if kind is str:
        if len(value) > _MAX_NUMBER or _DOUBLE.fullmatch(value) is None:
            raise Fault("this string is not a number")
        return float(value)
    return NotImplemented


def format_double(value: float) -> str:
    """The shortest digits that read back the same; an exponent below 1e-4 and from 1e6 on."""
    text = repr(value)
    if value == 0.0 or 1e-4 <= abs(value) < 1e6:
        return text.removesuffix(".0")
    if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 (NaN)
        return text
    mantissa, _, exponent = text.partition("e")
    if not exponent:
        whole, _, fraction = mantissa.lstrip("-").partition(".")
        exponent = str(len(whole) - 1)
        digits = (whole + fraction).rstrip("0")
        mantissa = ("-" if value < 0 else "") + digits[0]
        mantissa += f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{mantissa}e{int(exponent):+03d}"


def to_string(value: Any) -> Any:
    """string(): of anything but null, lists and maps."""
    kind = type(value)
    if kind is str:
        return value
    if kind is bool:
        return "true" if value else "false"
    if kind is int or kind is Uint:
        return str(int(value))
    if kind is float:
        return format_double(value)
    if kind is bytes:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Fault("these bytes are not UTF-8") from None
    if kind is Timestamp:
        return times.format_timestamp(value)
    return times.format_duration(value) if kind is Duration else NotImplemented


def to_bytes(env: Env, value: Any) -> Any:
    """bytes(): a string in UTF-8."""
    if type(value) is not str:
        return value if type(value) is bytes else NotImplemented
    take_size(env, len(value))
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise Fault("this string holds half of a surrogate pair") from None


def string(env: Env, value: Any) -> Any:
    """string(), metered where it builds anything long."""
    if type(value) is bytes:
        take_size(env, len(value))
    return to_string(value)


def to_bool(value: Any) -> Any:
    """bool(): of the usual spellings."""
    if type(value) is not str:
        return value if type(value) is bool else NotImplemented
    if value not in _BOOLS:
        raise Fault("this string is not a bool")
    return _BOOLS[value]


def to_timestamp(value: Any) -> Any:
    """timestamp(): of an RFC 3339 string or of seconds since 1970."""
    if type(value) is int:
        return times.timestamp(value * NANOS)
    if type(value) is str:
        return times.parse_timestamp(value)
    return value if type(value) is Timestamp else NotImplemented


def to_duration(value: Any) -> Any:
    """duration(): of a string such as 1h30m."""
    if type(value) is str:
        return times.parse_duration(value)
    return value if type(value) is Duration else NotImplemented


def size(value: Any) -> Any:
    """size(): characters, bytes, items or keys."""
    if type(value) in {str, list, bytes} or isinstance(value, Mapping):
        return len(value)
    return NotImplemented


PLAIN = {
    "int": of(to_int, 1),
    "uint": of(to_uint, 1),
    "double": of(to_double, 1),
    "string": of(string, 1, metered=True),
    "bytes": of(to_bytes, 1, metered=True),
    "bool": of(to_bool, 1),
    "timestamp": of(to_timestamp, 1),
    "duration": of(to_duration, 1),
    "dyn": of(lambda value: value, 1),
    "type": of(lambda value: Kind(kind_of(value)), 1),
    "size": of(size, 1),
}
METHODS = {"size": of(size, 1)}
