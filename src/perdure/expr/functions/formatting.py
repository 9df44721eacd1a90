"""`"…".format([…])`: %s %d %f %e %x %X %o %b with an optional precision, and %%."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from perdure.expr.budget import Env, take_size, take_steps
from perdure.expr.errors import Fault
from perdure.expr.functions.conversions import to_string
from perdure.expr.functions.function import of
from perdure.expr.values import Kind, Uint, kind_of

_CLAUSE = re.compile(r"%(?:\.([0-9]{1,3}))?([sdfexXob%])?")


def format_(env: Env, text: Any, args: Any) -> Any:
    """The text with each clause replaced by its argument."""
    if type(text) is not str or type(args) is not list:
        return NotImplemented
    out: list[str] = []
    last, used = 0, 0
    for found in _CLAUSE.finditer(text):
        out.append(text[last : found.start()])
        last = found.end()
        precision, verb = found.groups()
        if verb is None:
            raise Fault("format(): `%` is followed by no clause it knows (%s %d %f %e %x %o %b %%)")
        if verb == "%":
            out.append("%")
            continue
        if used >= len(args):
            raise Fault(f"format(): there is no argument {used + 1} for the clause `{found[0]}`")
        piece = _clause(env, verb, min(int(precision), 100) if precision else 6, args[used])
        take_size(env, len(piece))
        out.append(piece)
        used += 1
    take_size(env, len(text))
    return "".join([*out, text[last:]])


def _clause(env: Env, verb: str, precision: int, value: Any) -> str:
    kind = type(value)
    if verb == "s":
        return display(env, value)
    if verb in "fe":
        return _fixed(verb, precision, value)
    if kind is int or kind is Uint:
        return format(int(value), verb)
    if kind is float and verb == "d":
        return _fixed("f", 6, value)
    if kind is bool and verb == "b":
        return "1" if value else "0"
    if kind in {str, bytes} and verb in "xX":
        data: str = (value.encode("utf-8", "surrogatepass") if kind is str else value).hex()
        return data.upper() if verb == "X" else data
    raise Fault(f"format(): `%{verb}` has no meaning for {kind_of(value)}")


def _fixed(verb: str, precision: int, value: Any) -> str:
    if type(value) is str and value in {"NaN", "Infinity", "-Infinity"}:
        return str(value)
    if type(value) not in {int, Uint, float}:
        raise Fault(f"format(): `%{verb}` has no meaning for {kind_of(value)}")
    number = float(value)
    return _special(number) or format(number, f".{precision}{verb}")


def _special(value: float) -> str:
    if math.isfinite(value):
        return ""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def display(env: Env, value: Any) -> str:
    """What %s shows: string() where there is one, lists and maps in brackets."""
    take_steps(env, 1)
    if type(value) is float and (special := _special(value)):
        return special
    if value is None:
        return "null"
    if type(value) is Kind:
        return value.name
    if type(value) is list:
        return f"[{', '.join([display(env, item) for item in value])}]"
    if isinstance(value, Mapping):
        pairs = sorted((display(env, key), display(env, value[key])) for key in value)
        return f"{{{', '.join(f'{key}: {item}' for key, item in pairs)}}}"
    shown = to_string(value)
    if shown is NotImplemented:
        raise Fault(f"format(): `%s` has no meaning for {kind_of(value)}")
    take_size(env, len(shown))
    return str(shown)


PLAIN: dict[str, Any] = {}
METHODS = {"format": of(format_, 2, metered=True)}
