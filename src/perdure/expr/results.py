"""What leaves an expression: plain JSON, or text inside a string.

A value that is plain already is returned as it is, never copied; only what holds a CEL-only value
(a uint, a timestamp, bytes, a map with other keys) is rebuilt. The walk counts what it visits, so
that a small structure which shares its parts cannot become a large document.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

from perdure.expr.errors import Fault
from perdure.expr.functions.conversions import to_string
from perdure.expr.times import format_duration, format_timestamp
from perdure.expr.values import (
    INT_MAX,
    INT_MIN,
    Duration,
    Maybe,
    Timestamp,
    Uint,
    adopt,
    kind_of,
)

MAX_DEPTH = 200
_SURE = frozenset({str, bool, type(None)})


class _Walk:
    def __init__(self, room: int) -> None:
        self.room = room

    def plain(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _SURE:
            return value
        if kind is int:
            return value if INT_MIN <= value <= INT_MAX else adopt(value, "the result")
        if kind is float:
            if math.isfinite(value):
                return value
            raise Fault("the result is not a finite number, which JSON cannot hold")
        if depth > MAX_DEPTH:
            raise Fault(f"the result is nested deeper than {MAX_DEPTH} levels")
        if kind is list:
            return self.listed(value, depth)
        if isinstance(value, Mapping):
            return self.mapped(value, depth)
        return _leaf(value)

    def spend(self, count: int) -> None:
        # A container costs more time than what it holds.
        self.room -= count + 8
        if self.room < 0:
            raise Fault("the result is larger than the budget of output size allows")

    def listed(self, value: list[Any], depth: int) -> list[Any]:
        self.spend(len(value))
        changed: list[Any] | None = None
        for i, item in enumerate(value):
            if type(item) in _SURE:
                continue
            new = self.plain(item, depth + 1)
            if new is not item:
                changed = list(value) if changed is None else changed
                changed[i] = new
        return value if changed is None else changed

    def mapped(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        self.spend(len(value))
        changed: dict[str, Any] | None = None if type(value) is dict else {}
        for key, item in value.items():
            if type(key) is not str:
                return self.rekeyed(value, depth)
            new = item if type(item) in _SURE else self.plain(item, depth + 1)
            if changed is None and new is not item:
                changed = dict(value)
            if changed is not None:
                changed[key] = new
        return value if changed is None else changed  # type: ignore[return-value]

    def rekeyed(self, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        out = {str(to_string(key)): self.plain(item, depth + 1) for key, item in value.items()}
        if len(out) != len(value):
            raise Fault("two keys of a map are the same as text, and JSON has only text keys")
        return out


def _leaf(value: Any) -> Any:
    kind = type(value)
    if kind is Uint:
        return int(value)
    if kind is Timestamp:
        return format_timestamp(value)
    if kind is Duration:
        return format_duration(value)
    if kind is bytes:
        return base64.b64encode(value).decode()
    if kind is Maybe:
        raise Fault("the result is an optional; say what is meant with orValue() or value()")
    adopted = adopt(value, "the result")
    if adopted is value or type(adopted) is kind:
        raise Fault(f"a value of type {kind_of(value)} cannot be a result: JSON has none")
    return plain(adopted)


def plain(value: Any, room: int = 10_000_000) -> Any:
    """The value as plain JSON: the same object when it is. A fault when JSON cannot hold it."""
    kind = type(value)
    if kind in _SURE or (kind is int and INT_MIN <= value <= INT_MAX):
        return value
    return _Walk(room).plain(value, 0)


def text(value: Any, room: int = 10_000_000) -> str:
    """The value as it stands inside a string: string() of scalars, compact JSON of the rest."""
    if type(value) is str:
        return value
    if value is None:
        raise Fault(
            "null inside a text; say what is meant with orValue(), string() or a default such as"
            ' x == null ? "none" : x'
        )
    if type(value) is float:
        plain(value)
    shown = NotImplemented if type(value) is bytes else to_string(value)
    if shown is not NotImplemented:
        return str(shown)
    value = plain(value, room)
    if type(value) is str:
        return value
    out = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(out) > room:
        raise Fault("the result is larger than the budget of output size allows")
    return out


def truth(value: Any) -> bool:
    """The forgiving truth of a condition: empty strings, zeros of any kind and null are false."""
    if value is True or value is False:
        return bool(value)
    if value is None:
        return False
    if isinstance(value, str | int | float):
        return bool(value)
    if type(value) is Maybe:
        raise Fault("the condition is an optional; ask with hasValue() or give an orValue()")
    return True
