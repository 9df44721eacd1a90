"""What pages show as JSON, YAML, TOML or Python is that, and nodes and documents of them are ones
that perdure takes."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from perdure.graph import lint
from tests.docs.test_commands import PAGES
from tests.tidy.tree import ROOT

yaml = pytest.importorskip("yaml", reason="documents in YAML need the extra `yaml`")

BLOCK = re.compile(r"^```(json|yaml|toml|python)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _python(text: str) -> None:
    compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)


READERS: Mapping[str, Callable[[str], Any]] = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
    "python": _python,
}


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    yield from BLOCK.findall(page.read_text(encoding="utf-8"))


def document(value: Any) -> dict[str, Any] | None:
    """The document that a snippet is, or that holds the one node that it is."""
    if not isinstance(value, dict):
        return None
    if "nodes" in value:
        return value
    if "id" in value and "type" in value:
        return {"name": "shown", "nodes": [value]}
    return None


def errors(value: dict[str, Any]) -> list[str]:
    """What stops a document, but for nodes that are not shown."""
    found = [str(finding) for finding in lint(value) if finding.severity == "error"]
    return [error for error in found if "there is no node" not in error]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_shows_is_what_it_says_and_would_be_taken(page: Path) -> None:
    for kind, text in blocks(page):
        try:
            value = READERS[kind](text)
        except (ValueError, SyntaxError, yaml.YAMLError) as error:
            raise AssertionError(f"no {kind}: {error}\n{text}") from None
        shown = document(value)
        assert shown is None or errors(shown) == [], text


def test_a_node_that_would_be_refused_is_caught() -> None:
    node = {"id": "x", "type": "WAIT", "spec": {"duratoin": "1h"}}
    shown = document(node)
    assert shown is not None
    assert errors(shown) != []
    assert errors({"name": "ok", "nodes": [{**node, "spec": {"duration": "1h"}}]}) == []
