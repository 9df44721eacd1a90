"""Optionals: making them, asking them, and falling back. Fallbacks are evaluated when needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.expr.access import Eval
from perdure.expr.budget import Env, take_size
from perdure.expr.errors import Fault
from perdure.expr.functions.function import of
from perdure.expr.values import NONE, Duration, Maybe, Timestamp, kind_of

LAZY = frozenset({"or", "orValue"})


def none() -> Maybe:
    """optional.none()."""
    return NONE


def some(value: Any) -> Maybe:
    """optional.of()."""
    return Maybe(present=True, value=value)


def some_unless_zero(value: Any) -> Maybe:
    """optional.ofNonZeroValue(): none for null, false, zero, and what is empty."""
    if type(value) in {Timestamp, Duration}:
        empty = value.nanos == 0
    elif type(value) is Maybe:
        empty = not value.present
    else:
        empty = len(value) == 0 if isinstance(value, Mapping) else not value
    return NONE if empty else Maybe(present=True, value=value)


def has_value(value: Any) -> Any:
    """Whether there is a value."""
    return value.present if type(value) is Maybe else NotImplemented


def value_of(value: Any) -> Any:
    """The value, or a fault if there is none."""
    if type(value) is not Maybe:
        return NotImplemented
    if not value.present:
        raise Fault("value() of an optional that has none; orValue() gives a default")
    return value.value


def unwrap(env: Env, items: Any) -> Any:
    """The values of a list of optionals, those without one left out."""
    if type(items) is not list or any(type(item) is not Maybe for item in items):
        return NotImplemented
    take_size(env, len(items))
    return [item.value for item in items if item.present]


def either(name: str, target: Eval, other: Eval, at: int) -> Eval:
    """The closure of `a.or(b)` and `a.orValue(b)`."""
    flat = name == "orValue"

    def run(env: Env) -> Any:
        value = target(env)
        if type(value) is not Maybe:
            raise Fault(f"no such overload: {kind_of(value)}.{name}(); it is for optionals", at)
        if value.present:
            return value.value if flat else value
        fallback = other(env)
        if not flat and type(fallback) is not Maybe:
            raise Fault(f"or() needs an optional, not {kind_of(fallback)}; or use orValue()", at)
        return fallback

    return run


PLAIN = {
    "optional.none": of(none, 0),
    "optional.of": of(some, 1),
    "optional.ofNonZeroValue": of(some_unless_zero, 1),
    "optional.unwrap": of(unwrap, 1, metered=True),
}
METHODS = {
    "hasValue": of(has_value, 1),
    "value": of(value_of, 1),
    "unwrapOpt": of(unwrap, 1, metered=True),
    # Compiled by `either`; here so that the names are known and a wrong count is told.
    "or": of(lambda _a, _b: NotImplemented, 2),
    "orValue": of(lambda _a, _b: NotImplemented, 2),
}
