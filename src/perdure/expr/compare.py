"""Equality, order and membership as CEL has them.

Python's own operators will not do: to Python true is 1, a NaN in a list equals itself, and nothing
bounds the cost of comparing two structures that share their parts. Numbers compare across kinds;
an integer meets a double as a double.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from perdure.expr.budget import Env, take_length, take_steps
from perdure.expr.errors import Fault
from perdure.expr.values import KeyedMap, Kind, Maybe, Uint, kind_of

_NUMBERS = frozenset({int, float, Uint})
_PLAIN = frozenset({bool, type(None), Kind})


def equals(env: Env, a: Any, b: Any) -> bool:
    """Whether two values are equal. Values of different kinds are not."""
    ta, tb = type(a), type(b)
    if ta in _NUMBERS:
        if tb not in _NUMBERS:
            return False
        return float(a) == float(b) if (ta is float) != (tb is float) else bool(a == b)
    if ta is str or ta is bytes:
        take_length(env, len(a))
        return ta is tb and bool(a == b)
    if ta in _PLAIN:
        return ta is tb and bool(a == b)
    if ta is list:
        return tb is list and _equal_lists(env, a, b)
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and _equal_maps(env, a, b)
    if ta is not tb:
        return False
    if ta is Maybe:
        return a.present == b.present and (not a.present or equals(env, a.value, b.value))
    return bool(a == b)


def _equal_lists(env: Env, a: list[Any], b: list[Any]) -> bool:
    if len(a) != len(b):
        return False
    take_steps(env, len(a))
    for x, y in zip(a, b, strict=True):
        kind = type(x)
        if kind is str:
            if type(y) is not str or x != y:
                return False
        elif not equals(env, x, y):
            return False
    return True


def _equal_maps(env: Env, a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
    if len(a) != len(b):
        return False
    take_steps(env, len(a))
    for key, value in a.items():
        if key not in b or not equals(env, value, b[key]):
            return False
    return True


_ORDERED = frozenset({"bool", "string", "bytes", "google.protobuf.Timestamp",
                      "google.protobuf.Duration"})  # fmt: skip
_SIGNS = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}


def ordered(op: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
    """`op` (operator.lt and the like) of two values, or a fault if they have no order."""
    ta, tb = type(a), type(b)
    if ta in _NUMBERS and tb in _NUMBERS:
        if (ta is float) != (tb is float):
            return op(float(a), float(b))
        return op(a, b)
    left, right = kind_of(a), kind_of(b)
    if left == right and left in _ORDERED:
        return op(a, b)
    raise Fault(f"no such overload: {left} {_SIGNS[op]} {right}")


def contains(env: Env, item: Any, container: Any) -> bool:
    """`item in container`: an equal item of a list, a key of a map."""
    if type(container) is list:
        return _in_list(env, item, container)
    if isinstance(container, Mapping):
        return has_key(container, item)
    raise Fault(f"no such overload: {kind_of(item)} in {kind_of(container)}")


def _in_list(env: Env, item: Any, container: list[Any]) -> bool:
    take_steps(env, len(container) >> 4)
    if type(item) is str:
        return item in container
    return any(equals(env, item, other) for other in container)


def present(container: Mapping[Any, Any], key: Any) -> bool:
    """`key in container`, of a lazy mapping too that raises any LookupError for a miss."""
    try:
        return key in container
    except LookupError:
        return False


def has_key(container: Mapping[Any, Any], key: Any) -> bool:
    """Whether a map has a key; a double that is a whole number finds the integer."""
    kind = type(key)
    if kind is str:
        return present(container, key)
    if kind is float:
        return key.is_integer() and has_key(container, int(key))
    if kind not in {int, Uint, bool}:
        raise Fault(f"no such overload: {kind_of(key)} cannot be the key of a map")
    if type(container) is KeyedMap:
        return key in container
    # A dict of Python's: its key 1 answers to true as well.
    return key in container and any(
        key == own and (type(own) is bool) == (kind is bool) for own in container
    )
