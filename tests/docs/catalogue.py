"""Reads the catalogue of rules, its exemptions, and the rule marks of all tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.tidy.tree import ROOT, Source, sources

RULES = ROOT / "docs" / "reference" / "rules.md"
NOT_YET = ROOT / "tests" / "docs" / "not_yet.txt"
CANNOT = ROOT / "tests" / "docs" / "cannot_apply.md"
ENTRY = re.compile(r"^- \*\*([A-Z]+-\d+)\*\* (?=\S)", re.MULTILINE)


def catalogued() -> list[str]:
    """Every rule id of the catalogue, in its order."""
    return ENTRY.findall(RULES.read_text(encoding="utf-8"))


def not_yet() -> list[str]:
    """Rules that wait for their test."""
    lines = NOT_YET.read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def cannot_apply() -> list[str]:
    """Rules exempted with a written reason."""
    return ENTRY.findall(CANNOT.read_text(encoding="utf-8"))


def marks(source: Source) -> Iterator[tuple[str, str]]:
    """Every argument of `pytest.mark.rule(…)` as (rule, path:line).

    Decorators, `pytest.param(marks=…)` and `pytestmark` are all such calls. An argument that is
    not a plain string gives the rule '?': it could not be searched for.
    """
    for node in ast.walk(source.tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
        if node.func.attr != "rule" or name != "mark":
            continue
        for argument in node.args:
            plain = isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            rule = argument.value if plain else "?"  # type: ignore[union-attr]
            yield str(rule), f"{source.path}:{node.lineno}"


@cache
def tested() -> dict[str, list[str]]:
    """Rule -> where tests name it. The conformance kits are tests that live in the package."""
    found: dict[str, list[str]] = {}
    kits = (s for s in sources("src") if s.floor == "conformance")
    for source in (*sources("tests"), *kits):
        for rule, where in marks(source):
            found.setdefault(rule, []).append(where)
    return found
