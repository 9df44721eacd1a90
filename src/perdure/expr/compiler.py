"""A syntax tree to nested closures, with the reads noted on the way.

Every node becomes a closure that takes the evaluation's state and returns a value. Names are
resolved here, once: a macro's variable to a slot of the state, anything else to the variables. A
function nobody has is refused here, unless the caller asked for CEL's behaviour without a checker
(an error value when it is called).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from perdure.expr import access, macros, operators
from perdure.expr.access import Eval
from perdure.expr.budget import FIRST_SLOT, MAX_DEPTH, Env
from perdure.expr.errors import Fault, error_at
from perdure.expr.functions import METHODS, PLAIN
from perdure.expr.functions.calls import caller, check_call, unknown
from perdure.expr.functions.optionals import LAZY, either
from perdure.expr.references import Reads, path_of, proven
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
from perdure.expr.values import Maybe, adopt, kind_of


class Compiler:
    """One use: `Compiler(text, container, check).compile(tree)`; then `reads` and `slots`."""

    def __init__(self, text: str, container: str, check: bool) -> None:
        self.text = text
        self.container = container
        self.check = check
        self.reads = Reads()
        self.slots = 0
        self.depth = 0
        self.locals: dict[str, int] = {}
        self.lazy: dict[int, Eval] = {}

    def compile(self, node: Node) -> Eval:
        """The closure of a node."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise error_at(f"the expression is deeper than {MAX_DEPTH} levels", self.text, node.at)
        run: Eval = getattr(self, f"on_{type(node).__name__.lower()}")(node)
        self.depth -= 1
        return run

    def on_literal(self, node: Literal) -> Eval:
        value = node.value
        return lambda env: value

    def on_ident(self, node: Ident) -> Eval:
        return self.on_select(node)

    def on_select(self, node: Node) -> Eval:
        """A path: noted as a whole, then compiled as one chain as far as it is constant."""
        root, steps, optional_from = path_of(node)
        if root is not None and (root.absolute or root.name not in self.locals):
            self.reads.note(root, steps, optional_from)
        return self.quiet(node)

    on_index = on_select

    def quiet(self, node: Node) -> Eval:
        """`on_select` of a part of a path that was noted already."""
        root, steps, optional_from = path_of(node)
        if root is not None and optional_from > len(steps):
            slot = None if root.absolute else self.locals.get(root.name)
            if slot is not None:
                if slot in self.lazy:
                    return access.lazy_chain(slot, root.name, steps, self.lazy[slot])
                return access.local_chain(slot, root.name, steps)
            container = "" if root.absolute else self.container
            return access.variable_chain(root.name, root.at, steps, container)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise error_at(f"the expression is deeper than {MAX_DEPTH} levels", self.text, node.at)
        if isinstance(node, Select):
            target = self.quiet_target(node.target, noted=root is not None)
            run = _field(target, node.field, node.at, node.optional)
        else:
            assert isinstance(node, Index)
            target = self.quiet_target(node.target, noted=root is not None)
            run = _item(target, self.compile(node.key), node.at, node.optional)
        self.depth -= 1
        return run

    def quiet_target(self, node: Node, *, noted: bool) -> Eval:
        return self.quiet(node) if noted else self.compile(node)

    def on_has(self, node: Has) -> Eval:
        root, steps, optional_from = path_of(node.select)
        noted = root is not None
        if root is not None and (root.absolute or root.name not in self.locals):
            self.reads.note(root, steps, optional_from, presence=True)
        target = self.quiet_target(node.select.target, noted=noted)
        field, at = node.select.field, node.select.at

        def run(env: Env) -> bool:
            value = target(env)
            try:
                return access.has_field(value, field)
            except Fault as fault:
                fault.at = at if fault.at < 0 else fault.at
                raise

        return run

    def on_unary(self, node: Unary) -> Eval:
        operand = self.compile(node.operand)
        return (operators.invert if node.op == "!" else operators.negate)(operand, node.at)

    def on_binary(self, node: Binary) -> Eval:
        left = self.compile(node.left)
        if node.op == "in" and isinstance(node.left, Literal) and isinstance(node.right, Ident):
            right = self.membership(node.left, node.right)
        else:
            right = self.compile(node.right)
        return operators.binary(node.op, left, right, node.at, node.right)

    def membership(self, item: Literal, root: Ident) -> Eval:
        """`"id" in tasks` asks for one task and can be told."""
        if root.name in self.locals or type(item.value) is not str:
            return self.compile(root)
        self.reads.note(root, [(item.value, item.at)], 1_000_000, presence=True)
        return self.quiet(root)

    def on_logic(self, node: Logic) -> Eval:
        before = self.reads.guards
        truth = node.op == "&&"
        facts = [proven(item, truth) for item in node.items]
        proofs = Counter(id for each in facts for id in each)
        together = before | proofs.keys()
        runs: list[Eval] = []
        for item, own in zip(node.items, facts, strict=True):
            # What an item proves does not protect the item itself.
            self.reads.guards = together - {
                id for id in own if proofs[id] == 1 and id not in before
            }
            runs.append(self.compile(item))
        self.reads.guards = before
        return operators.logic(node.op, runs, node.at)

    def on_ternary(self, node: Ternary) -> Eval:
        before = self.reads.guards
        condition = self.compile(node.condition)
        self.reads.guards = before | proven(node.condition, truth=True)
        then = self.compile(node.then)
        self.reads.guards = before | proven(node.condition, truth=False)
        otherwise = self.compile(node.otherwise)
        self.reads.guards = before
        return operators.choose(condition, then, otherwise, node.at)

    def on_listof(self, node: ListOf) -> Eval:
        runs = [self.compile(item) for item, _ in node.items]
        if not any(optional for _, optional in node.items):
            return lambda env: [run(env) for run in runs]
        flags = [optional for _, optional in node.items]
        at = node.at

        def build(env: Env) -> list[Any]:
            out = []
            for run, optional in zip(runs, flags, strict=True):
                value = run(env)
                if not optional:
                    out.append(value)
                elif _opened(value, at):
                    out.append(value.value)
            return out

        return build

    def on_mapof(self, node: MapOf) -> Eval:
        runs = [(self.compile(k), self.compile(v), optional) for k, v, optional in node.entries]
        at = node.at

        def build(env: Env) -> Any:
            pairs = []
            for key, run, optional in runs:
                name, value = key(env), run(env)
                if not optional:
                    pairs.append((name, value))
                elif _opened(value, at):
                    pairs.append((name, value.value))
            try:
                return macros.make_map(pairs)
            except Fault as fault:
                fault.at = at
                raise

        return build

    def on_macro(self, node: Macro) -> Eval:
        target = self.compile(node.target)
        before = self.locals
        self.locals = dict(before)
        slots = []
        for name in node.names:
            slots.append(FIRST_SLOT + self.slots)
            self.locals[name] = FIRST_SLOT + self.slots
            self.slots += 1
        if node.name == "bind":
            self.lazy[slots[0]] = target
        bodies = [self.compile(arg) for arg in node.args]
        self.locals = before
        return macros.build(node.name, target, slots, bodies, node.at)

    def on_call(self, node: Call) -> Eval:
        name, args, table = node.name, node.args, PLAIN
        target = node.target
        if target is not None:
            qualified = self.qualified(target, name)
            if qualified:
                name = qualified
            else:
                args, table = [target, *args], METHODS
        function = table.get(name)
        if function is None:
            if self.check:
                raise error_at(unknown(node.name, method=table is METHODS), self.text, node.at)
            for arg in args:
                self.compile(arg)
            return _missing(unknown(node.name, method=table is METHODS), node.at)
        if name in LAZY and table is METHODS and len(args) == 2:
            return either(name, self.compile(args[0]), self.compile(args[1]), node.at)
        problem = check_call(name, function, args) if self.check else None
        if problem is not None:
            raise error_at(problem, self.text, node.at)
        return caller(name, function, [self.compile(arg) for arg in args], node.at)

    def qualified(self, target: Node, name: str) -> str:
        """`math.abs` for a call written math.abs(…) where `math` is no variable of a macro."""
        if isinstance(target, Ident) and target.name not in self.locals:
            full = f"{target.name}.{name}"
            return full if full in PLAIN else ""
        return ""


def _missing(message: str, at: int) -> Eval:
    def run(_env: Env) -> Any:
        raise Fault(message, at)

    return run


def _opened(value: Any, at: int) -> bool:
    if type(value) is Maybe:
        return value.present
    raise Fault(f"`?` before an item needs an optional, not {kind_of(value)}", at)


def _field(target: Eval, field: str, at: int, optional: bool) -> Eval:
    read = access.select_optional if optional else access.select

    def run(env: Env) -> Any:
        value = target(env)
        try:
            return adopt(read(value, field), field)
        except Fault as fault:
            fault.at = at if fault.at < 0 else fault.at
            raise

    return run


def _item(target: Eval, key: Eval, at: int, optional: bool) -> Eval:
    read = access.item_optional if optional else access.item

    def run(env: Env) -> Any:
        value, index = target(env), key(env)
        try:
            return adopt(read(value, index), "the item")
        except Fault as fault:
            fault.at = at if fault.at < 0 else fault.at
            raise

    return run
