"""Problems of a text name its line, whatever the text looks like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.graph import Graph, lint
from perdure.graph.lines import with_lines
from perdure.graph.read import pointer
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding
from tests.unit.graph.documents import ORDER, changed

TEXT = """{
  "name": "g",
  "nodes": [
    {"id": "a", "type": "FORK"},
    {
      "id": "b",

      "type": "NO", "x\\"y/": 1
    }
  ],
  "edges": [{"from": "a",
             "to": "c"}], "z": 99999999999999999999999999, "z": NaN
}"""


def test_every_problem_of_a_text_names_its_line() -> None:
    found = {problem.pointer: problem.line for problem in lint(TEXT)}
    assert found == {
        "/nodes": 3,
        "/nodes/0": 4,
        "/nodes/1/type": 8,
        '/nodes/1/x"y~1': 8,
        "/edges/0/to": 12,
        "/z": 12,
    }


@pytest.mark.parametrize("source", [TEXT, TEXT.encode(), "\ufeff" + TEXT])
def test_the_message_begins_with_the_line(source: Any) -> None:
    with pytest.raises(GraphError, match='\n  line 12, /edges/0/to: there is no node "c"'):
        Graph.load(source)


def test_a_mapping_has_no_lines() -> None:
    assert [problem.line for problem in lint({**ORDER, "x": 1})] == [0]


def test_a_warning_names_its_line() -> None:
    text = json.dumps(changed("/nodes/1/type", "FORK"), indent=1)
    assert all(finding.line for finding in lint(text))


KEYS = st.text(max_size=4) | st.sampled_from(["0", "~", "/", '"', "\\", "\n"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | KEYS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
)


def places(value: Any, at: str = "") -> dict[str, Any]:
    """Every pointer into a value, with the key or the item that stands there."""
    found: dict[str, Any] = {}
    for key, member in value.items() if isinstance(value, dict) else enumerate(value):
        below = pointer(at, key)
        found[below] = key if isinstance(value, dict) else member
        if isinstance(member, dict | list):
            found |= places(member, below)
    return found


@given(st.lists(VALUES, min_size=1) | st.dictionaries(KEYS, VALUES, min_size=1), st.data())
def test_the_line_is_the_one_that_holds_the_key_or_the_item(
    value: Any, data: st.DataObject
) -> None:
    text = json.dumps(value, indent=1)
    known = places(value)
    wanted = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, unique=True))
    for finding in with_lines([Finding(p, "x") for p in wanted], text):
        line = text.split("\n")[finding.line - 1].strip()
        there = known[finding.pointer]
        assert line.startswith(json.dumps(there)[:1])
        if not isinstance(there, dict | list):
            assert line.startswith(json.dumps(there))
