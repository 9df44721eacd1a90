"""The math extension: rounding, signs, extremes, bits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from perdure.expr.budget import Env, take_steps
from perdure.expr.compare import ordered
from perdure.expr.errors import Fault
from perdure.expr.functions.function import of
from perdure.expr.values import INT_MAX, INT_MIN, UINT_MAX, Uint

_NUMBERS = frozenset({int, float, Uint})


def _whole(round_: Callable[[float], int]) -> Callable[[Any], Any]:
    def run(value: Any) -> Any:
        if type(value) is not float:
            return NotImplemented
        if not math.isfinite(value):
            return value
        return math.copysign(float(round_(value)), value)

    return run


def _half_away(value: float) -> int:
    whole = math.floor(abs(value))
    if abs(value) - whole >= 0.5:
        whole += 1
    return -whole if value < 0 else whole


def absolute(value: Any) -> Any:
    """math.abs()."""
    if type(value) is int:
        if value == INT_MIN:
            raise Fault("integer overflow: math.abs() does not fit 64 bits")
        return abs(value)
    if type(value) is float:
        return abs(value)
    return value if type(value) is Uint else NotImplemented


def sign(value: Any) -> Any:
    """math.sign(): -1, 0 or 1 of the same kind."""
    kind = type(value)
    if kind not in _NUMBERS or value != value:  # noqa: PLR0124 (NaN)
        return value if kind is float else NotImplemented
    return kind((value > 0) - (value < 0))


def square_root(value: Any) -> Any:
    """math.sqrt(): a double, NaN of what is negative."""
    if type(value) not in _NUMBERS:
        return NotImplemented
    return math.sqrt(value) if value >= 0 else math.nan


def _extreme(beats: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def run(env: Env, *values: Any) -> Any:
        items = values[0] if len(values) == 1 and type(values[0]) is list else values
        if not items or any(type(item) not in _NUMBERS for item in items):
            return NotImplemented
        take_steps(env, len(items) >> 4)
        best = items[0]
        for item in items[1:]:
            if ordered(beats, item, best):
                best = item
        return best

    return run


def _bits(compute: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    def run(a: Any, b: Any) -> Any:
        kind = type(a)
        if kind is not type(b) or (kind is not int and kind is not Uint):
            return NotImplemented
        return kind(compute(int(a), int(b)))

    return run


def invert(value: Any) -> Any:
    """math.bitNot()."""
    if type(value) is int:
        return ~value
    return Uint(UINT_MAX - value) if type(value) is Uint else NotImplemented


def _shift(shift: Callable[[int, int], int]) -> Callable[[Any, Any], Any]:
    """Shifts move the 64 bits as they are, so the sign of an int is one of them."""

    def run(value: Any, by: Any) -> Any:
        if type(by) is not int or type(value) not in {int, Uint}:
            return NotImplemented
        if by < 0:
            raise Fault("a shift by a negative number of bits")
        moved = shift(int(value) & UINT_MAX, by) & UINT_MAX if by < 64 else 0
        if type(value) is Uint:
            return Uint(moved)
        return moved - 2**64 if moved > INT_MAX else moved

    return run


def _asks(test: Callable[[float], bool]) -> Callable[[Any], Any]:
    return lambda value: test(value) if type(value) is float else NotImplemented


PLAIN = {
    "math.ceil": of(_whole(math.ceil), 1),
    "math.floor": of(_whole(math.floor), 1),
    "math.round": of(_whole(_half_away), 1),
    "math.trunc": of(_whole(math.trunc), 1),
    "math.abs": of(absolute, 1),
    "math.sign": of(sign, 1),
    "math.sqrt": of(square_root, 1),
    "math.isNaN": of(_asks(math.isnan), 1),
    "math.isInf": of(_asks(math.isinf), 1),
    "math.isFinite": of(_asks(math.isfinite), 1),
    "math.greatest": of(_extreme(operator.gt), 1, 64, metered=True),
    "math.least": of(_extreme(operator.lt), 1, 64, metered=True),
    "math.bitAnd": of(_bits(operator.and_), 2),
    "math.bitOr": of(_bits(operator.or_), 2),
    "math.bitXor": of(_bits(operator.xor), 2),
    "math.bitNot": of(invert, 1),
    "math.bitShiftLeft": of(_shift(operator.lshift), 2),
    "math.bitShiftRight": of(_shift(operator.rshift), 2),
}
METHODS: dict[str, Any] = {}
