"""Every place in the code where a message to users is made, as the pattern of its text.

Told from the syntax tree: the class that is raised, or the finding that is noted, and the constant
parts of its message. A message that is another one handed on has no pattern and is not counted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

import msgspec

from perdure.model import errors
from tests.tidy.tree import Source, sources

FLOORS: Final = ("graph", "model", "expr", "kernel", "engine", "client", "cli", "stores")
#: Calls that make a message, with the place of the text among their arguments.
MAKERS: Final = {
    **{name: 0 for name, kind in vars(errors).items()
       if isinstance(kind, type) and issubclass(kind, errors.PerdureError)},
    **dict.fromkeys(("WaitSpecError", "BrokenCondition", "Trouble", "usage", "refusal"), 0),
    **dict.fromkeys(("Finding", "problem", "misplaced", "FailureRecord", "refused"), 1),
    **dict.fromkeys(("warning", "_trouble"), 2),
}  # fmt: skip
#: Methods of this name that note a finding whose text is their first argument.
_FIRST: Final = {"reading"}
_LETTERS: Final = 8


class Site(msgspec.Struct, frozen=True):
    """A message in the code: `where` names file and function, `start` how its text begins."""

    where: str
    start: str
    pattern: str

    @property
    def key(self) -> str:
        return f"{self.where}: {self.start}"


@cache
def sites() -> list[Site]:
    """All places of all floors that graphs use."""
    found = [site for source in sources("src") if source.floor in FLOORS for site in _sites(source)]
    return sorted(dict.fromkeys(found), key=lambda site: site.key)


def _sites(source: Source) -> Iterator[Site]:
    for function in ast.walk(source.tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in _own(function):
                if isinstance(node, ast.Call):
                    for text in _texts(node, function):
                        yield from _site(source, function.name, text)


def _own(function: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions within it."""
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child
            yield from _own(child)


def _texts(call: ast.Call, function: ast.AST) -> Iterator[ast.expr]:
    """The expressions that may be the message of a call that makes one."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name not in MAKERS:
        return
    place = MAKERS[name]
    if isinstance(call.func, ast.Attribute) and name == "problem":
        owner = call.func.value
        place = 0 if isinstance(owner, ast.Name) and owner.id in _FIRST else 1
    if place < len(call.args):
        yield from _meant(call.args[place], function)


def _meant(text: ast.expr, function: ast.AST) -> Iterator[ast.expr]:
    """The text itself, or what a local name was given."""
    if isinstance(text, ast.IfExp):
        yield from _meant(text.body, function)
        yield from _meant(text.orelse, function)
    elif isinstance(text, ast.Name):
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == text.id for target in node.targets
            ):
                yield from _meant(node.value, function)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                names = [getattr(name, "id", "") for name in node.targets[0].elts]
                if text.id in names and isinstance(node.value, ast.Tuple):
                    yield from _meant(node.value.elts[names.index(text.id)], function)
    else:
        yield text


def _site(source: Source, function: str, text: ast.expr) -> Iterator[Site]:
    parts = _parts(text)
    constant = "".join(part for part in parts if part)
    if len(re.findall(r"\w", constant)) < _LETTERS:
        return
    while not parts[0]:
        parts = parts[1:]
    while not parts[-1]:
        parts = parts[:-1]
    pattern = "".join(re.escape(part) if part else ".*?" for part in parts)
    start = "".join(part or "…" for part in parts).strip()[:60].rstrip()
    place = source.path.removeprefix("src/perdure/")
    yield Site(f"{place} {function}", start.replace("\n", " "), pattern)


def _parts(text: ast.expr) -> list[str]:
    """The constant parts of a text in order, "" for what is filled in."""
    if isinstance(text, ast.Constant) and isinstance(text.value, str):
        return [text.value]
    if isinstance(text, ast.JoinedStr):
        return [
            str(value.value) if isinstance(value, ast.Constant) else "" for value in text.values
        ]
    if isinstance(text, ast.BinOp) and isinstance(text.op, ast.Add):
        return [*_parts(text.left), *_parts(text.right)]
    return [""]
