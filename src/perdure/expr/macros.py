"""Closures for the macros: the only loops of the language.

Each turn sets the macro's variables in the evaluation's slots and runs the body. The steps of a
whole loop are taken from the budget before it starts and those not used are given back, so a turn
itself costs no accounting; the cost is linear in the items.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from perdure.expr.access import PENDING, Eval
from perdure.expr.budget import STEPS, Env, take_size, take_steps
from perdure.expr.errors import Fault
from perdure.expr.functions.lists import sort_by
from perdure.expr.values import (
    INT_MAX,
    INT_MIN,
    NONE,
    READY,
    KeyedMap,
    Maybe,
    Uint,
    adopt,
    kind_of,
)

_KEY_TYPES = frozenset({str, int, Uint, bool})
_CHECKED = READY | {int}


def make_map(pairs: list[tuple[Any, Any]]) -> Mapping[Any, Any]:
    """A map of these entries: a dict when every key is a string. Refuses a key given twice."""
    plain = True
    for key, _ in pairs:
        if type(key) is not str:
            if type(key) not in _KEY_TYPES:
                raise Fault(f"a {kind_of(key)} cannot be the key of a map")
            plain = False
    if not plain:
        return KeyedMap(pairs)
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Fault("a map has the same key twice")
    return out


def adopted(items: list[Any], name: str) -> list[Any]:
    """The items, looked at once; the same list unless one of them had to change."""
    kinds = set(map(type, items))
    if not kinds <= _CHECKED:
        return [adopt(item, f"an item that {name}() reads") for item in items]
    if int in kinds:
        for item in items:
            if type(item) is int and not INT_MIN <= item <= INT_MAX:
                adopt(item, f"an item that {name}() reads")
    return items


def _singles(env: Env, value: Any, name: str) -> list[Any]:
    if type(value) is list:
        take_steps(env, len(value) + 1)
        return adopted(value, name)
    if isinstance(value, Mapping):
        take_steps(env, len(value) + 1)
        return list(value)
    raise Fault(f"no such overload: {name}() over a value of type {kind_of(value)}")


def _pairs(env: Env, value: Any, name: str) -> list[tuple[Any, Any]]:
    if type(value) is list:
        take_steps(env, len(value) + 1)
        return list(enumerate(adopted(value, name)))
    if isinstance(value, Mapping):
        take_steps(env, len(value) + 1)
        return list(zip(value, adopted([value[key] for key in value], name), strict=True))
    raise Fault(f"no such overload: {name}() over a value of type {kind_of(value)}")


def quantifier(name: str, target: Eval, slots: list[int], body: Eval, at: int) -> Eval:
    """`all` and `exists`: one deciding item excuses the faults of others."""
    decides: bool = name == "exists"
    two, first, last = len(slots) == 2, slots[0], slots[-1]
    read = _pairs if two else _singles

    def run(env: Env) -> bool:
        items = read(env, target(env), name)
        problem: Fault | None = None
        for turn, item in enumerate(items):
            if two:
                env[first], env[last] = item
            else:
                env[first] = item
            try:
                value = body(env)
            except Fault as fault:
                problem = problem or fault
                continue
            if value is decides:
                env[STEPS] += len(items) - turn - 1
                return value is True
            if value is not True and value is not False:
                problem = problem or _not_bool(name, value)
        if problem is not None:
            raise problem
        return not decides

    return _located(run, at)


def exactly_one(name: str, target: Eval, slots: list[int], body: Eval, at: int) -> Eval:
    """`exists_one`: whether the body holds for one item and no more. Faults are not excused."""
    two, first, last = len(slots) == 2, slots[0], slots[-1]
    read = _pairs if two else _singles

    def run(env: Env) -> bool:
        count = 0
        for item in read(env, target(env), name):
            if two:
                env[first], env[last] = item
            else:
                env[first] = item
            count += _test(name, body(env))
        return count == 1

    return _located(run, at)


def filtered(name: str, target: Eval, slots: list[int], body: Eval, at: int) -> Eval:
    """`filter`: the items for which the body holds."""
    slot = slots[0]

    def run(env: Env) -> list[Any]:
        out = []
        for item in _singles(env, target(env), name):
            env[slot] = item
            value = body(env)
            if value is True:
                out.append(item)
            elif value is not False:
                raise _not_bool(name, value)
        take_size(env, len(out))
        return out

    return _located(run, at)


def mapped(name: str, target: Eval, slots: list[int], bodies: list[Eval], at: int) -> Eval:
    """`map` and `transformList`, with or without a filter before the transformation."""
    two, first, last = len(slots) == 2, slots[0], slots[-1]
    read = _pairs if two else _singles
    body = bodies[-1]
    keep = bodies[0] if len(bodies) == 2 else None

    def run(env: Env) -> list[Any]:
        out = []
        for item in read(env, target(env), name):
            if two:
                env[first], env[last] = item
            else:
                env[first] = item
            if keep is None or _test(name, keep(env)):
                out.append(body(env))
        take_size(env, len(out))
        return out

    return _located(run, at)


def mapped_map(name: str, target: Eval, slots: list[int], bodies: list[Eval], at: int) -> Eval:
    """`transformMap` (new values) and `transformMapEntry` (new entries)."""
    first, last = slots
    body = bodies[-1]
    keep = bodies[0] if len(bodies) == 2 else None
    entries = name == "transformMapEntry"

    def run(env: Env) -> Mapping[Any, Any]:
        out: list[tuple[Any, Any]] = []
        for item in _pairs(env, target(env), name):
            env[first], env[last] = item
            if keep is not None and not _test(name, keep(env)):
                continue
            value = body(env)
            if not entries:
                out.append((item[0], value))
            elif isinstance(value, Mapping):
                take_size(env, len(value))
                out += value.items()
            else:
                raise Fault(f"{name}() needs a map for each item, not {kind_of(value)}")
        take_size(env, len(out))
        return make_map(out)

    return _located(run, at)


def sorted_by(name: str, target: Eval, slots: list[int], body: Eval, at: int) -> Eval:
    """`sortBy`: the items in the order of what the body makes of them."""
    slot = slots[0]

    def run(env: Env) -> list[Any]:
        value = target(env)
        if type(value) is not list:
            raise Fault(f"no such overload: {name}() over a value of type {kind_of(value)}")
        keys = []
        for item in _singles(env, value, name):
            env[slot] = item
            keys.append(body(env))
        return sort_by(env, value, keys)

    return _located(run, at)


def optional_map(name: str, target: Eval, slots: list[int], body: Eval, at: int) -> Eval:
    """`optMap` and `optFlatMap`: the body of the value of an optional, if there is one."""
    slot = slots[0]
    flat = name == "optFlatMap"

    def run(env: Env) -> Maybe:
        value = target(env)
        if type(value) is not Maybe:
            raise Fault(f"no such overload: {kind_of(value)}.{name}(); it is for optionals")
        if not value.present:
            return NONE
        env[slot] = value.value
        result = body(env)
        if not flat:
            return Maybe(present=True, value=result)
        if type(result) is not Maybe:
            raise Fault(f"optFlatMap() needs an optional, not {kind_of(result)}")
        return result

    return _located(run, at)


def bound(slot: int, body: Eval) -> Eval:
    """`cel.bind(name, value, body)`: the value is computed when it is first read, and once."""

    def run(env: Env) -> Any:
        env[slot] = PENDING
        return body(env)

    return run


def build(name: str, target: Eval, slots: list[int], bodies: list[Eval], at: int) -> Eval:
    """The closure of the macro called `name`."""
    if name in {"map", "transformList"}:
        return mapped(name, target, slots, bodies, at)
    if name in {"transformMap", "transformMapEntry"}:
        return mapped_map(name, target, slots, bodies, at)
    if name == "bind":
        return bound(slots[0], bodies[0])
    return _SIMPLE[name](name, target, slots, bodies[0], at)


_SIMPLE: dict[str, Callable[[str, Eval, list[int], Eval, int], Eval]] = {
    "all": quantifier,
    "exists": quantifier,
    "exists_one": exactly_one,
    "existsOne": exactly_one,
    "filter": filtered,
    "sortBy": sorted_by,
    "optMap": optional_map,
    "optFlatMap": optional_map,
}


def _test(name: str, value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise _not_bool(name, value)


def _not_bool(name: str, value: Any) -> Fault:
    return Fault(f"{name}() needs a condition, not a {kind_of(value)}")


def _located(run: Eval, at: int) -> Eval:
    def located(env: Env) -> Any:
        try:
            return run(env)
        except Fault as fault:
            if fault.at < 0:
                fault.at = at
            raise

    return located
