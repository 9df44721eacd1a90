"""CEL tokens to a syntax tree, by precedence climbing.

Macros are recognised here because they bind names. Nesting is bounded here, so that no later
walk of the tree can run out of stack. Messages (`Type{…}`) are refused: JSON has none.
"""

from __future__ import annotations

from typing import NoReturn

from perdure.expr.budget import MAX_NESTING
from perdure.expr.errors import error_at
from perdure.expr.lex import Token
from perdure.expr.tree import (
    Binary,
    Call,
    Has,
    Ident,
    Index,
    ListOf,
    Literal,
    Logic,
    Macro,
    MapOf,
    Node,
    Select,
    Ternary,
    Unary,
)
from perdure.expr.values import INT_MAX

_PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "in": 3,
    "+": 4, "-": 4, "*": 5, "/": 5, "%": 5,
}  # fmt: skip

RESERVED = frozenset(
    "as break const continue else for function if import let loop package namespace return var"
    " void while".split()
)

# name -> how many variables and expressions, for each number of arguments.
MACROS: dict[str, dict[int, int]] = {
    "all": {2: 1, 3: 2},
    "exists": {2: 1, 3: 2},
    "exists_one": {2: 1, 3: 2},
    "existsOne": {2: 1, 3: 2},
    "map": {2: 1, 3: 1},
    "filter": {2: 1},
    "transformList": {3: 2, 4: 2},
    "transformMap": {3: 2, 4: 2},
    "transformMapEntry": {3: 2, 4: 2},
    "sortBy": {2: 1},
    "optMap": {2: 1},
    "optFlatMap": {2: 1},
}


class Parser:
    """One use: `Parser(text, tokens).parse()`."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.i = 0
        self.depth = 0

    def parse(self) -> Node:
        """The whole of the tokens as one expression, or an ExprError."""
        node = self.ternary()
        if self.tokens[self.i][0] != "end":
            self.unexpected("the end of the expression")
        return node

    def fail(self, message: str, at: int) -> NoReturn:
        raise error_at(message, self.text, at)

    def unexpected(self, wanted: str) -> NoReturn:
        kind, value, at = self.tokens[self.i]
        found = "the end" if kind == "end" else f"`{value}`"
        self.fail(f"found {found} where {wanted} should stand", at)

    def expect(self, kind: str) -> int:
        token = self.tokens[self.i]
        if token[0] != kind:
            self.unexpected(f"`{kind}`")
        self.i += 1
        return token[2]

    def ternary(self) -> Node:
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.fail(f"nested deeper than {MAX_NESTING} levels", self.tokens[self.i][2])
        node = self.binary(1)
        # `a ? b : c ? d : e` is a long way of saying else-if: read without going deeper.
        choices: list[tuple[int, Node, Node]] = []
        while self.tokens[self.i][0] == "?":
            at = self.tokens[self.i][2]
            self.i += 1
            choices.append((at, node, self.binary(1)))
            self.expect(":")
            node = self.binary(1)
        for at, condition, then in reversed(choices):
            node = Ternary(at, condition, then, node)
        self.depth -= 1
        return node

    def binary(self, least: int) -> Node:
        left = self.unary()
        while True:
            op, _, at = self.tokens[self.i]
            level = _PRECEDENCE.get(op, 0)
            if level < least:
                return left
            if level > 2:
                self.i += 1
                left = Binary(at, op, left, self.binary(level + 1))
                continue
            items = [left]
            while self.tokens[self.i][0] == op:
                self.i += 1
                items.append(self.binary(level + 1))
            left = Logic(at, op, items)

    def unary(self) -> Node:
        op, _, at = self.tokens[self.i]
        if op not in {"!", "-"}:
            return self.postfix(self.primary())
        begin = self.i
        while self.tokens[self.i][0] == op:
            self.i += 1
        count = self.i - begin
        if op == "-" and self.tokens[self.i][0] in {"int", "float"}:
            count -= 1
            number = self.tokens[self.i][1]
            self.i += 1
            node = self.postfix(Literal(self.tokens[self.i - 2][2], -number))
        else:
            node = self.postfix(self.primary())
        # Pairs cancel; one pair stays, so that the operand is still checked to be of the kind.
        for _ in range(count if count < 2 else 2 - count % 2):
            node = Unary(at, op, node)
        return node

    def primary(self) -> Node:
        kind, value, at = self.tokens[self.i]
        self.i += 1
        if kind == "name":
            return self.named(value, at)
        if kind in {"string", "float", "uint", "bytes"}:
            return Literal(at, value)
        if kind == "int":
            if value > INT_MAX:
                self.fail("this integer does not fit 64 bits", at)
            return Literal(at, value)
        if kind in {"true", "false", "null"}:
            return Literal(at, {"true": True, "false": False, "null": None}[kind])
        if kind == "(":
            node = self.ternary()
            self.expect(")")
            return node
        if kind == "[":
            return self.listing(at)
        if kind == "{":
            return self.mapping(at)
        if kind == "." and self.tokens[self.i][0] == "name":
            kind, value, at = self.tokens[self.i]
            self.i += 1
            return self.named(value, at, absolute=True)
        if kind == "-" and self.tokens[self.i][0] in {"int", "float"}:
            number = self.tokens[self.i][1]
            self.i += 1
            return Literal(at, -number)
        self.i -= 1
        return self.unexpected("a value")

    def named(self, name: str, at: int, *, absolute: bool = False) -> Node:
        if name in RESERVED:
            self.fail(f"`{name}` is a reserved word and cannot name a variable", at)
        if self.tokens[self.i][0] != "(":
            return Ident(at, name, absolute)
        args = self.arguments()
        if name == "has":
            if len(args) == 1 and isinstance(args[0], Select) and not args[0].optional:
                return Has(at, args[0])
            self.fail("has() takes one field, as in has(tasks.fetch.output)", at)
        return Call(at, name, None, args)

    def arguments(self) -> list[Node]:
        self.expect("(")
        args: list[Node] = []
        if self.tokens[self.i][0] == ")":
            self.i += 1
            return args
        while True:
            args.append(self.ternary())
            if self.tokens[self.i][0] == ")":
                self.i += 1
                return args
            self.expect(",")

    def postfix(self, node: Node) -> Node:
        while True:
            kind, _, at = self.tokens[self.i]
            if kind == ".":
                node = self.member(node)
            elif kind == "[":
                self.i += 1
                optional = self.optional()
                key = self.ternary()
                self.expect("]")
                node = Index(at, node, key, optional)
            elif kind == "{" and isinstance(node, Ident | Select):
                self.fail("messages (`Name{…}`) are not part of these expressions", at)
            else:
                return node

    def optional(self) -> bool:
        if self.tokens[self.i][0] == "?":
            self.i += 1
            return True
        return False

    def member(self, target: Node) -> Node:
        self.i += 1
        optional = self.optional()
        kind, name, at = self.tokens[self.i]
        if kind not in {"name", "quoted"}:
            self.unexpected("a field name")
        self.i += 1
        if optional or kind == "quoted" or self.tokens[self.i][0] != "(":
            return Select(at, target, name, optional)
        args = self.arguments()
        if isinstance(target, Ident) and target.name == "cel" and name == "bind":
            return self.bind(args, at)
        variables = MACROS.get(name, {}).get(len(args), 0)
        if not variables:
            return Call(at, name, target, args)
        return Macro(at, name, target, self.variables(name, args[:variables]), args[variables:])

    def variables(self, macro: str, args: list[Node]) -> list[str]:
        names: list[str] = []
        for arg in args:
            if not isinstance(arg, Ident) or arg.absolute:
                self.fail(f"{macro}() takes a plain name for the variable it binds", arg.at)
            if arg.name in names:
                self.fail(f"{macro}() binds the name `{arg.name}` twice", arg.at)
            names.append(arg.name)
        return names

    def bind(self, args: list[Node], at: int) -> Node:
        if len(args) != 3:
            self.fail("cel.bind() takes a name, a value and an expression", at)
        return Macro(at, "bind", args[1], self.variables("cel.bind", args[:1]), args[2:])

    def listing(self, at: int) -> Node:
        items: list[tuple[Node, bool]] = []
        if self.tokens[self.i][0] == ",":
            self.i += 1
            self.expect("]")
            return ListOf(at, items)
        while self.tokens[self.i][0] != "]":
            optional = self.optional()
            items.append((self.ternary(), optional))
            if self.tokens[self.i][0] != "]":
                self.expect(",")
        self.i += 1
        return ListOf(at, items)

    def mapping(self, at: int) -> Node:
        entries: list[tuple[Node, Node, bool]] = []
        while self.tokens[self.i][0] != "}":
            optional = self.optional()
            key = self.ternary()
            self.expect(":")
            entries.append((key, self.ternary(), optional))
            if self.tokens[self.i][0] != "}":
                self.expect(",")
        self.i += 1
        return MapOf(at, entries)
