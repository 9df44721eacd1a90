"""Closures for the operators: arithmetic within one kind of number, comparisons, logic.

Each factory looks at its operands once, when the expression is compiled, so that evaluation takes
the short way for what is common (two ints, a constant on the right) and asks the slow functions
for the rest. Integers are 64 bits wide and overflow is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from perdure.expr.access import Eval
from perdure.expr.budget import Env, take_length, take_size
from perdure.expr.compare import contains, equals, ordered
from perdure.expr.errors import Fault
from perdure.expr.times import time_sum
from perdure.expr.tree import Literal, Node
from perdure.expr.values import INT_MAX, INT_MIN, UINT_MAX, Duration, Timestamp, Uint, kind_of

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EXACT = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_SIMPLE = (str, int, float, bool, type(None))


def binary(op: str, left: Eval, right: Eval, at: int, right_node: Node) -> Eval:
    """The closure of `left op right`."""
    constant = isinstance(right_node, Literal) and type(right_node.value) in _SIMPLE
    if op in _ORDER:
        if constant:
            return _order_constant(op, left, right_node.value, at)  # type: ignore[attr-defined]
        return _order(op, left, right, at)
    if op in {"==", "!="}:
        wanted = op == "=="
        if constant:
            return _equal_constant(left, right_node.value, wanted)  # type: ignore[attr-defined]
        return lambda env: equals(env, left(env), right(env)) is wanted
    if op == "in":
        return _membership(left, right, at)
    if op in _EXACT:
        return _exact(op, left, right, at)
    return _divide(op, left, right, at)


def _order_constant(op: str, left: Eval, constant: Any, at: int) -> Eval:
    compare = _ORDER[op]
    kind = type(constant)
    plain = kind in {int, float, str}

    def run(env: Env) -> bool:
        value = left(env)
        if type(value) is kind and plain:
            return compare(value, constant)
        try:
            return ordered(compare, value, constant)
        except Fault as fault:
            raise _at(fault, at) from None

    return run


def _order(op: str, left: Eval, right: Eval, at: int) -> Eval:
    compare = _ORDER[op]

    def run(env: Env) -> bool:
        a = left(env)
        b = right(env)
        if type(a) is str:
            take_length(env, len(a))
        try:
            return ordered(compare, a, b)
        except Fault as fault:
            raise _at(fault, at) from None

    return run


def _equal_constant(left: Eval, constant: Any, wanted: bool) -> Eval:
    kind = type(constant)

    def run(env: Env) -> bool:
        value = left(env)
        if type(value) is kind:
            return (value == constant) is wanted
        return equals(env, value, constant) is wanted

    return run


def _membership(left: Eval, right: Eval, at: int) -> Eval:
    def run(env: Env) -> bool:
        item = left(env)
        container = right(env)
        try:
            return contains(env, item, container)
        except Fault as fault:
            raise _at(fault, at) from None

    return run


def _exact(op: str, left: Eval, right: Eval, at: int) -> Eval:
    compute = _EXACT[op]

    def run(env: Env) -> Any:
        a = left(env)
        b = right(env)
        if type(a) is int and type(b) is int:
            result = compute(a, b)
            if INT_MIN <= result <= INT_MAX:
                return result
            raise Fault(f"integer overflow: int {op} int does not fit 64 bits", at)
        if type(a) is float and type(b) is float:
            return compute(a, b)
        try:
            return _other(env, op, a, b)
        except Fault as fault:
            raise _at(fault, at) from None

    return run


def _other(env: Env, op: str, a: Any, b: Any) -> Any:
    kind = type(a)
    if kind is type(b):
        if kind is Uint:
            result = _EXACT[op](int(a), int(b))
            if 0 <= result <= UINT_MAX:
                return Uint(result)
            raise Fault(f"unsigned integer overflow: uint {op} uint does not fit 64 bits")
        if op == "+" and kind in {str, list, bytes}:
            take_size(env, len(a) + len(b))
            return a + b
    if op in "+-" and (kind is Duration or kind is Timestamp):
        result = time_sum(op, a, b)
        if result is not None:
            return result
    raise no_overload(op, a, b)


def _divide(op: str, left: Eval, right: Eval, at: int) -> Eval:
    def run(env: Env) -> Any:
        a = left(env)
        b = right(env)
        kind = type(a)
        divides = kind is int or kind is Uint or (kind is float and op == "/")
        if kind is not type(b) or not divides:
            raise _at(no_overload(op, a, b), at)
        if kind is float:
            return _float_quotient(a, b)
        if b == 0:
            raise Fault("division by zero" if op == "/" else "modulus by zero", at)
        quotient = abs(int(a)) // abs(int(b))
        if (a < 0) != (b < 0):
            quotient = -quotient
        if quotient > (UINT_MAX if kind is Uint else INT_MAX):
            raise Fault(f"integer overflow: int {op} int does not fit 64 bits", at)
        return kind(quotient if op == "/" else a - b * quotient)

    return run


def _float_quotient(a: float, b: float) -> float:
    if b != 0.0:
        return a / b
    if a == 0.0 or a != a:  # noqa: PLR0124 (only a NaN is unequal to itself)
        return float("nan")
    return a * float("inf") * (1.0 if str(b)[0] != "-" else -1.0)


def no_overload(op: str, a: Any, b: Any) -> Fault:
    """The fault of an operator that is not defined for these kinds, with what would help."""
    left, right = kind_of(a), kind_of(b)
    numbers = {"int", "uint", "double"}
    hint = ""
    if left != right and left in numbers and right in numbers:
        hint = "; convert one side: double() makes a double of an int, int() an int of a double"
    elif op == "+" and "string" in {left, right}:
        hint = "; string() makes a string of a number"
    return Fault(f"no such overload: {left} {op} {right}{hint}")


def negate(operand: Eval, at: int) -> Eval:
    """The closure of `-operand`."""

    def run(env: Env) -> Any:
        value = operand(env)
        if type(value) is float:
            return -value
        if type(value) is int:
            if value == INT_MIN:
                raise Fault("integer overflow: the negation does not fit 64 bits", at)
            return -value
        raise Fault(f"no such overload: -{kind_of(value)}", at)

    return run


def invert(operand: Eval, at: int) -> Eval:
    """The closure of `!operand`."""

    def run(env: Env) -> bool:
        value = operand(env)
        if value is True:
            return False
        if value is False:
            return True
        raise Fault(f"no such overload: !{kind_of(value)}", at)

    return run


def logic(op: str, items: list[Eval], at: int) -> Eval:
    """The closure of `a && b && …` or `a || b || …`: one deciding side excuses the others."""
    decides = op == "||"

    def run(env: Env) -> bool:
        problem: Fault | None = None
        for evaluate in items:
            try:
                value = evaluate(env)
            except Fault as fault:
                problem = problem or fault
                continue
            if value is decides:
                return value is True
            if value is not True and value is not False:
                problem = problem or Fault(f"no such overload: {kind_of(value)} {op} bool", at)
        if problem is not None:
            raise problem
        return not decides

    return run


def choose(condition: Eval, then: Eval, otherwise: Eval, at: int) -> Eval:
    """The closure of `condition ? then : otherwise`."""

    def run(env: Env) -> Any:
        value = condition(env)
        if value is True:
            return then(env)
        if value is False:
            return otherwise(env)
        raise Fault(f"no such overload: the condition of `?:` is a {kind_of(value)}", at)

    return run


def _at(fault: Fault, at: int) -> Fault:
    if fault.at < 0:
        fault.at = at
    return fault
