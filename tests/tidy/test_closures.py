"""No function made inside an `except … as error` keeps `error` for later: Python forgets the name
when the block ends, and whoever is called then finds nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.tree import Source, planted, sources

Made = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.GeneratorExp)


def kept_errors(source: Source) -> Iterator[str]:
    """Every name of a caught error that a function or generator made there refers to."""
    for handler in ast.walk(source.tree):
        if not isinstance(handler, ast.ExceptHandler) or handler.name is None:
            continue
        for made in ast.walk(handler):
            if isinstance(made, Made) and _refers(made, handler.name):
                yield f"{source.path}:{made.lineno}: keeps {handler.name}"


def _refers(made: ast.AST, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in ast.walk(made)
    )


def test_no_function_keeps_a_caught_error_by_its_name() -> None:
    # scenario 108
    assert [found for source in sources("src") for found in kept_errors(source)] == []


def test_one_that_does_is_found() -> None:
    text = "try: f()\nexcept E as error:\n    later(lambda: tell(error))\n"
    assert len(list(kept_errors(planted(text)))) == 1
    bound = "try: f()\nexcept E as error:\n    later(partial(tell, error))\n"
    assert list(kept_errors(planted(bound))) == []
