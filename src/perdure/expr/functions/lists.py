"""Lists: slices, order, ranges, doubles out, levels out."""

from __future__ import annotations

import operator
from typing import Any

from perdure.expr.budget import Env, take_size, take_steps
from perdure.expr.compare import equals, ordered
from perdure.expr.errors import Fault
from perdure.expr.functions.function import of
from perdure.expr.values import NONE, Maybe, Uint, kind_of

_HASHED = frozenset({str, bytes, int, Uint, float, type(None)})


def items_range(env: Env, count: Any) -> Any:
    """lists.range(n): 0 to n - 1."""
    if type(count) is not int:
        return NotImplemented
    take_size(env, max(count, 0))
    return list(range(count))


def sliced(env: Env, items: Any, start: Any, end: Any) -> Any:
    """The items from `start` up to `end`, which is left out."""
    if type(items) is not list or type(start) is not int or type(end) is not int:
        return NotImplemented
    if not 0 <= start <= end <= len(items):
        raise Fault("slice(): the bounds are outside the list or in the wrong order")
    take_size(env, end - start)
    return items[start:end]


def reverse(env: Env, value: Any) -> Any:
    """The items, or the characters of a string, from the last to the first."""
    if type(value) is not list and type(value) is not str:
        return NotImplemented
    take_size(env, len(value))
    return value[::-1]


def distinct(env: Env, items: Any) -> Any:
    """The first of each group of equal items."""
    if type(items) is not list:
        return NotImplemented
    take_size(env, len(items))
    take_steps(env, len(items))
    seen: set[Any] = set()
    others: list[Any] = []
    out: list[Any] = []
    for item in items:
        if type(item) in _HASHED:
            # Python finds a NaN equal to itself by identity; CEL never does.
            if item == item and item in seen:  # noqa: PLR0124
                continue
            seen.add(item)
        else:
            take_steps(env, len(others))
            if any(equals(env, item, other) for other in others):
                continue
            others.append(item)
        out.append(item)
    return out


def flatten(env: Env, items: Any, depth: Any = 1) -> Any:
    """One list of the items of nested lists, down to `depth` levels."""
    if type(items) is not list or type(depth) is not int:
        return NotImplemented
    if depth < 0:
        raise Fault("flatten(): the depth is negative")
    out: list[Any] = []
    levels = [iter(items)]
    while levels:
        for item in levels[-1]:
            if type(item) is list and len(levels) <= depth:
                take_steps(env, 1)
                levels.append(iter(item))
                break
            take_size(env, 1)
            out.append(item)
        else:
            levels.pop()
    return out


def sort_by(env: Env, items: list[Any], keys: list[Any]) -> list[Any]:
    """The items in the order of their keys, which must all be of one kind that has an order."""
    if not keys:
        return []
    kinds = {kind_of(key) for key in keys}
    if len(kinds) != 1:
        raise Fault(f"cannot sort values of several kinds: {', '.join(sorted(kinds))}")
    ordered(operator.lt, keys[0], keys[0])
    take_size(env, len(items))
    take_steps(env, len(items) * len(items).bit_length() >> 2)
    if kinds == {"double"}:
        # A NaN has no place among numbers; without this the order would depend on the input.
        order = sorted(range(len(keys)), key=lambda i: (keys[i] != keys[i], keys[i]))
    else:
        order = sorted(range(len(keys)), key=keys.__getitem__)
    return [items[i] for i in order]


def sort(env: Env, items: Any) -> Any:
    """The items in order; they must all be of one kind."""
    return sort_by(env, items, items) if type(items) is list else NotImplemented


def first(items: Any) -> Any:
    """An optional of the first item."""
    if type(items) is not list:
        return NotImplemented
    return Maybe(present=True, value=items[0]) if items else NONE


def last(items: Any) -> Any:
    """An optional of the last item."""
    if type(items) is not list:
        return NotImplemented
    return Maybe(present=True, value=items[-1]) if items else NONE


PLAIN = {"lists.range": of(items_range, 1, metered=True)}
METHODS = {
    "slice": of(sliced, 3, metered=True),
    "reverse": of(reverse, 1, metered=True),
    "distinct": of(distinct, 1, metered=True),
    "flatten": of(flatten, 1, 2, metered=True),
    "sort": of(sort, 1, metered=True),
    "first": of(first, 1),
    "last": of(last, 1),
}
