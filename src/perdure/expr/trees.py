"""What an expression is by its form, for checkers of documents: no value is looked at.

Runs never depend on it; a form that cannot be told is "".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from perdure.expr.errors import ExprError, position
from perdure.expr.lex import tokenize
from perdure.expr.parse import Parser
from perdure.expr.references import Position, path_of
from perdure.expr.tree import (
    Binary,
    Call,
    Has,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Node,
    Ternary,
    Unary,
)

_LITERALS: Final = {bool: "bool", str: "text", int: "number", float: "number", type(None): "null"}
_CALLS: Final = {
    **dict.fromkeys(("contains", "startsWith", "endsWith", "matches", "bool", "hasValue"), "bool"),
    **dict.fromkeys(("size", "int", "uint", "double", "indexOf", "lastIndexOf"), "number"),
    **dict.fromkeys(("string", "lowerAscii", "upperAscii", "trim", "replace", "join"), "text"),
    **dict.fromkeys(("substring", "charAt", "format"), "text"),
    **dict.fromkeys(("split", "sort", "distinct", "flatten", "reverse"), "list"),
}
_MACROS: Final = {
    **dict.fromkeys(("all", "exists", "exists_one", "existsOne"), "bool"),
    **dict.fromkeys(("map", "filter"), "list"),
}
_COMPARISONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


class Comparison(msgspec.Struct, frozen=True):
    """`path == "word"`: what is compared with which text, and where it begins."""

    path: tuple[str | int, ...]
    word: str
    at: Position


def trees_of(text: str) -> list[Node]:
    """The trees of all expressions of a template text that compiles."""
    trees: list[Node] = []
    at = 0
    while (brace := text.find("{{", at)) >= 0:
        if text.startswith("{{{{", brace):
            at = brace + 4
            continue
        try:
            tokens, at = tokenize(text, brace + 2, template=True)
            trees.append(Parser(text, tokens).parse())
        except (ExprError, RecursionError):
            return trees
    return trees


def form_of(node: Node) -> str:
    """`bool`, `number`, `text`, `list`, `map`, `null`, or "" where only a run can tell."""
    if isinstance(node, Literal):
        return _LITERALS.get(type(node.value), "")
    if isinstance(node, Logic | Has):
        return "bool"
    if isinstance(node, Unary):
        return "bool" if node.op == "!" else "number"
    if isinstance(node, Binary):
        return _of_binary(node)
    if isinstance(node, Ternary):
        then, otherwise = form_of(node.then), form_of(node.otherwise)
        return then if then == otherwise else ""
    if isinstance(node, ListOf | MapOf):
        return "list" if isinstance(node, ListOf) else "map"
    if isinstance(node, Macro):
        return form_of(node.args[-1]) if node.name == "bind" else _MACROS.get(node.name, "")
    return _CALLS.get(node.name, "") if isinstance(node, Call) else ""


def _of_binary(node: Binary) -> str:
    if node.op in _COMPARISONS:
        return "bool"
    sides = {form_of(node.left), form_of(node.right)} - {""}
    # Times and durations are added and subtracted too; a side that is known settles it.
    return sides.pop() if len(sides) == 1 else ""


def comparisons(text: str) -> list[Comparison]:
    """Every comparison of a constant path with a text, `==`, `!=` or `in` a list of texts."""
    found: list[Comparison] = []
    for tree in trees_of(text):
        for node in _nodes(tree):
            if isinstance(node, Binary) and node.op in ("==", "!=", "in"):
                found += _compared(text, node)
    return found


def _compared(text: str, node: Binary) -> Iterator[Comparison]:
    sides = [(node.left, node.right)]
    if node.op != "in":
        sides.append((node.right, node.left))
    for path, value in sides:
        root, steps, _ = path_of(path)
        if root is None or not steps:
            continue
        words = [item for item, _ in value.items] if isinstance(value, ListOf) else [value]
        for word in words:
            if isinstance(word, Literal) and isinstance(word.value, str):
                keys = (root.name, *(key for key, _ in steps))
                yield Comparison(keys, word.value, position(text, root.at))


def _nodes(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    waiting: list[object] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Node):
            yield one
            waiting += [getattr(one, name) for name in one.__struct_fields__]
        elif isinstance(one, list | tuple):
            waiting += one
