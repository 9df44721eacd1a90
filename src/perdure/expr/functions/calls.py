"""Call sites: closures that evaluate arguments, call a function and place its faults."""

from __future__ import annotations

import difflib
from typing import Any

from perdure.expr.access import Eval
from perdure.expr.budget import Env
from perdure.expr.errors import Fault
from perdure.expr.functions import METHODS, PLAIN
from perdure.expr.functions.function import Function
from perdure.expr.patterns.matching import compiled
from perdure.expr.tree import Literal, Node
from perdure.expr.values import kind_of


def caller(name: str, function: Function, args: list[Eval], at: int) -> Eval:
    """The closure of a call."""
    if not function.least <= len(args) <= function.most:
        return _wrong_count(name, args, at)
    run = function.run
    if function.metered:
        return _metered(name, run, args, at)
    if len(args) == 1:
        return _single(name, run, args[0], at)

    def call(env: Env) -> Any:
        values = [arg(env) for arg in args]
        try:
            result = run(*values)
        except Fault as fault:
            fault.at = at if fault.at < 0 else fault.at
            raise
        if result is NotImplemented:
            raise _no_overload(name, values, at)
        return result

    return call


def _single(name: str, run: Any, arg: Eval, at: int) -> Eval:
    def call(env: Env) -> Any:
        value = arg(env)
        try:
            result = run(value)
        except Fault as fault:
            fault.at = at if fault.at < 0 else fault.at
            raise
        if result is NotImplemented:
            raise _no_overload(name, [value], at)
        return result

    return call


def _metered(name: str, run: Any, args: list[Eval], at: int) -> Eval:
    def call(env: Env) -> Any:
        values = [arg(env) for arg in args]
        try:
            result = run(env, *values)
        except Fault as fault:
            fault.at = at if fault.at < 0 else fault.at
            raise
        if result is NotImplemented:
            raise _no_overload(name, values, at)
        return result

    return call


def _wrong_count(name: str, args: list[Eval], at: int) -> Eval:
    def call(env: Env) -> Any:
        raise _no_overload(name, [arg(env) for arg in args], at)

    return call


def _no_overload(name: str, values: list[Any], at: int) -> Fault:
    kinds = ", ".join(kind_of(value) for value in values)
    return Fault(f"no such overload: {name}({kinds})", at)


def check_call(name: str, function: Function, args: list[Node]) -> str | None:
    """What is wrong with a call whatever its values are, None if nothing is."""
    if not function.least <= len(args) <= function.most:
        return f"{name}() does not take this number of arguments"
    if name == "matches":
        pattern = args[1]
        if isinstance(pattern, Literal) and type(pattern.value) is str:
            try:
                compiled(pattern.value)
            except Fault as fault:
                return fault.message
    return None


def unknown(name: str, *, method: bool) -> str:
    """The message for a function that does not exist, with the nearest that does."""
    close = difflib.get_close_matches(name, METHODS if method else PLAIN, 1, 0.75)
    hint = f"; did you mean {close[0]}()?" if close else ""
    if not hint and method and name in PLAIN:
        hint = f"; write {name}(value)"
    return f"no such function: {name}(){hint}"
