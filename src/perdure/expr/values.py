"""The values of CEL as Python holds them.

JSON stays what it is (None, bool, int, float, str, list, dict). The rest of CEL gets types of its
own: `Uint`, `Timestamp`, `Duration`, `Maybe` (an optional), `Kind` (a type) and `KeyedMap`, the
map whose keys are not all strings: Python cannot tell the keys 1 and true apart, CEL can.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from perdure.expr.errors import Fault
from perdure.model.moments import EPOCH

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
NANOS = 1_000_000_000
TIMESTAMP_MIN = -62_135_596_800 * NANOS
TIMESTAMP_MAX = 253_402_300_800 * NANOS - 1
DURATION_MAX = 315_576_000_000 * NANOS


class Uint(int):
    """An unsigned 64-bit integer: `1u`."""

    __slots__ = ()


class Timestamp(msgspec.Struct, frozen=True, order=True):
    """An instant, in nanoseconds since 1970-01-01T00:00:00Z."""

    nanos: int


class Duration(msgspec.Struct, frozen=True, order=True):
    """A span of time in nanoseconds."""

    nanos: int


class Maybe(msgspec.Struct, frozen=True):
    """An optional: `optional.of(value)`, or `optional.none()` when not `present`."""

    present: bool
    value: Any = None


NONE = Maybe(present=False)


class Kind(msgspec.Struct, frozen=True):
    """A type as a value: what `type(1)` and the name `int` mean."""

    name: str


class KeyedMap(Mapping[Any, Any]):
    """A map with keys that are ints, uints or bools beside strings. Keeps order, never changes."""

    __slots__ = ("_entries",)

    def __init__(self, items: Iterable[tuple[Any, Any]]) -> None:
        entries: dict[Any, tuple[Any, Any]] = {}
        for key, value in items:
            plain = _hashed(key)
            if plain in entries:
                raise Fault("a map has the same key twice")
            entries[plain] = (key, value)
        self._entries = entries

    def __getitem__(self, key: object) -> Any:
        return self._entries[_hashed(key)][1]

    def __contains__(self, key: object) -> bool:
        return _hashed(key) in self._entries

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


def _hashed(key: object) -> object:
    return (key,) if type(key) is bool else key


TYPE_NAMES = frozenset(
    {
        "bool", "int", "uint", "double", "string", "bytes", "list", "map", "null_type", "type",
        "optional_type", "google.protobuf.Timestamp", "google.protobuf.Duration",
    }
)  # fmt: skip

_KINDS: dict[type, str] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null_type",
    Kind: "type",
    Maybe: "optional_type",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
}


def kind_of(value: object) -> str:
    """The CEL name of a value's type."""
    name = _KINDS.get(type(value))
    if name is None:
        if isinstance(value, Mapping):
            return "map"
        raise Fault(f"a value of the Python type {type(value).__name__} has no meaning in CEL")
    return name


# Types a variable may hold that need no look before use (ints need one: their range).
READY = frozenset(
    {bool, str, float, type(None), list, dict, KeyedMap, Uint, Timestamp, Duration, Maybe, Kind,
     bytes}
)  # fmt: skip


def adopt(value: Any, name: str) -> Any:
    """A Python value read from `name` as CEL sees it, or a fault that names it."""
    kind = type(value)
    if kind in READY:
        return value
    if isinstance(value, int):
        if INT_MIN <= value <= INT_MAX:
            return int(value)
        raise Fault(f"{name} is an integer beyond 64 bits; write it as a string")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise Fault(f"{name} is a time without a time zone")
        return Timestamp(_nanos(value - EPOCH))
    if isinstance(value, datetime.timedelta):
        return Duration(_nanos(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Mapping):
        return value
    raise Fault(f"{name} is a Python {kind.__name__}, which has no meaning in CEL")


def _nanos(delta: datetime.timedelta) -> int:
    return (delta.days * 86_400 + delta.seconds) * NANOS + delta.microseconds * 1_000
