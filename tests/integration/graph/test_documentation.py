"""The page on graph documents: its examples load, and it names every key there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from perdure.graph import lint
from perdure.graph.document import EDGE_KEYS, NODE_KEYS, RETRY_KEYS, TOP_KEYS, TYPES
from perdure.graph.specs import HTTP_KEYS, METHODS, TASK_KEYS
from perdure.graph.waits import EVENT_KEYS, SIGNAL_KEYS, WAIT_KEYS
from perdure.kernel.children import CHILD_KEYS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "graph-documents.md"
TEXT = PAGE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```json\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_there_are_examples() -> None:
    assert EXAMPLES != []


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_loads_without_a_warning(example: str) -> None:
    assert lint(example) == []


KEYS = [TOP_KEYS, NODE_KEYS, EDGE_KEYS, RETRY_KEYS, HTTP_KEYS, TASK_KEYS]
KEYS += [WAIT_KEYS, SIGNAL_KEYS, EVENT_KEYS, CHILD_KEYS]


@pytest.mark.parametrize("keys", KEYS)
def test_every_key_has_a_row_or_a_sentence(keys: tuple[str, ...]) -> None:
    rows = " ".join(line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| `"))
    assert [k for k in keys if f"`{k}`" not in rows and k not in ("input", "config")] == []


@pytest.mark.parametrize("words", [TYPES, METHODS])
def test_every_type_and_method_is_named(words: tuple[str, ...]) -> None:
    assert [word for word in words if not re.search(rf"\b{word}\b", TEXT)] == []
