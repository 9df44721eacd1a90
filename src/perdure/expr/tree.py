"""The syntax tree of CEL. Every node knows the offset (`at`) an error about it should point to."""

from __future__ import annotations

from typing import Any

import msgspec


class Node(msgspec.Struct):
    """Base of all nodes; `at` is an offset in the source."""

    at: int


class Literal(Node):
    """A constant; a negative number is one too."""

    value: Any


class Ident(Node):
    """A name; `absolute` when written `.name`, which no container and no macro hides."""

    name: str
    absolute: bool = False


class Select(Node):
    """`target.field`, or `target.?field` when `optional`."""

    target: Node
    field: str
    optional: bool = False


class Has(Node):
    """`has(target.field)`."""

    select: Select


class Index(Node):
    """`target[key]`, or `target[?key]` when `optional`."""

    target: Node
    key: Node
    optional: bool = False


class Call(Node):
    """`name(args)`, or `target.name(args)`."""

    name: str
    target: Node | None
    args: list[Node]


class Unary(Node):
    """`!operand` or `-operand`."""

    op: str
    operand: Node


class Binary(Node):
    """`left op right`; comparisons, arithmetic, `in`."""

    op: str
    left: Node
    right: Node


class Logic(Node):
    """`a && b && c` or `a || b || c`, kept flat."""

    op: str
    items: list[Node]


class Ternary(Node):
    """`condition ? then : otherwise`."""

    condition: Node
    then: Node
    otherwise: Node


class ListOf(Node):
    """`[a, ?b]`: items with whether they are optional."""

    items: list[tuple[Node, bool]]


class MapOf(Node):
    """`{k: v, ?k: v}`: keys, values and whether the entry is optional."""

    entries: list[tuple[Node, Node, bool]]


class Macro(Node):
    """`target.name(names…, args…)`; `names` are the variables it binds in `args`."""

    name: str
    target: Node
    names: list[str]
    args: list[Node]
