"""Reads how modules of the package use one another and what they borrow from others."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from tests.tidy.calls import STANDARD, imports
from tests.tidy.tree import Source

#: Words that say nothing about what a file is for.
EMPTY_NAMES = {
    *("base", "common", "core", "helper", "helpers", "manager", "managers", "misc", "other"),
    *("stuff", "things", "tools", "util", "utils", "various"),
}


def empty_names(paths: Iterable[str]) -> list[str]:
    """Paths of which a part, split at underscores, is a word that says nothing."""
    problems = []
    for path in paths:
        words = path.removesuffix(".py").replace("/", "_").split("_")
        problems += [f"{path}: name it after what it holds" for w in words if w in EMPTY_NAMES]
    return problems


def without_docstring(sources: Iterable[Source]) -> list[str]:
    """Files with code and no opening docstring."""
    return [
        f"{s.path}: open with what it owns, what it refuses, why"
        for s in sources
        if s.tree.body and not ast.get_docstring(s.tree)
    ]


def references(source: Source) -> set[str]:
    """Dotted names of the package that a file mentions: imports, and strings of lazy imports."""
    found: set[str] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Constant) and str(node.value).startswith("perdure."):
            found.add(str(node.value).split(":")[0])
    return found


def dead(sources: Iterable[Source], doors: Mapping[str, str]) -> list[str]:
    """Modules that no other module of the package uses and no door leads to."""
    known = list(sources)
    used = {
        name
        for source in known
        for name in references(source)
        if name != source.module  # a module's mention of itself keeps nothing alive
    }
    # A package is alive as soon as something inside it is.
    used |= {parent for name in used for parent in parents(name)}
    return [f"{s.path}: nothing imports it" for s in known if s.module not in used | set(doors)]


def parents(name: str) -> list[str]:
    """`a.b.c` as a.b and a."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def imports_of_the_root(source: Source) -> list[str]:
    """Imports of `perdure` itself: the list of public names stands above every floor."""
    return [
        f"{source.path}:{node.lineno}: import from the module that owns the name"
        for node in ast.walk(source.tree)
        if (
            isinstance(node, ast.ImportFrom)
            and node.module == "perdure"
            and source.module != "perdure"
        )
        or (isinstance(node, ast.Import) and any(n.name == "perdure" for n in node.names))
    ]


def foreign_imports(source: Source, places: Mapping[str, tuple[str, ...]]) -> list[str]:
    """Third-party imports outside the modules that `places` gives for them (prefixes)."""
    problems = []
    for line, name in imports(source.tree):
        top = name.split(".")[0]
        if top in STANDARD or top == "perdure":
            continue
        if not any(f"{source.module}.".startswith(f"{p}.") for p in places.get(top, ())):
            problems.append(f"{source.path}:{line}: {top} has no place here")
    return problems
