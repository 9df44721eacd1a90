"""Problems of a text name line and column, whatever the text looks like."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.graph import Graph, lint
from perdure.graph.lines import SourceText, with_lines
from perdure.graph.read import pointer
from perdure.graph.source import Format
from perdure.graph.yaml_nodes import compose
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
    with pytest.raises(
        GraphError, match='\n  line 12, column 20, /edges/0/to: there is no node "c"'
    ):
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


def written(value: Any, form: str) -> SourceText:
    if form == "json":
        return SourceText(json.dumps(value, indent=1))
    text = yaml.safe_dump(value, width=10_000)
    return SourceText(text, compose(text))


@pytest.mark.parametrize("form", ["json", "yaml"])
@settings(max_examples=50, deadline=None)
@given(st.lists(VALUES, min_size=1) | st.dictionaries(KEYS, VALUES, min_size=1), st.data())
def test_the_place_is_that_of_the_key_or_the_item(
    form: str, value: Any, data: st.DataObject
) -> None:
    source = written(value, form)
    known = places(value)
    wanted = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, unique=True))
    for finding in with_lines([Finding(p, "x", on_key=True) for p in wanted], source):
        line = source.text.split("\n")[finding.line - 1][finding.column - 1 :]
        there = known[finding.pointer]
        if form == "json":
            assert line.startswith(json.dumps(there)[:1])
            if not isinstance(there, dict | list):
                assert line.startswith(json.dumps(there))
        elif isinstance(there, str):
            shown = yaml.safe_dump(there, width=10_000).rpartition("\n...")[0]
            assert line.lstrip("? ").startswith((shown[:1] or "'", "'", '"', "|", ">"))


WITHIN = [
    ('{"output": "{{inptu.x}}"}', "json", 15),
    ('{"output": "{{[\\"\\u00e4\\ud834\\udd1e\\", inptu.x]}}"}', "json", 40),
    ("output: '{{inptu.x}}'", "yaml", 12),
    ("output: '''{{inptu.x}}'", "yaml", 14),
    ("output: text {{inptu.x}}", "yaml", 16),
    ('output: "\\x41\\u00e4{{inptu.x}}"', "yaml", 22),
    ("output: &name '{{inptu.x}}'", "yaml", 18),
]


@pytest.mark.parametrize(("text", "form", "column"), WITHIN)
def test_a_place_inside_a_string_is_told_as_long_as_it_stands_in_one_line(
    text: str, form: Format, column: int
) -> None:
    (finding,) = [one for one in lint(text, format=form) if "inptu" in one.message]
    assert (finding.line, finding.column, finding.within) == (1, column, None)
    assert "of the text" not in str(finding)


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("output: >-\n  two\n  lines {{inptu.x}}", (1, 13)),
        ("output: |-\n  two\n  lines {{inptu.x}}", (2, 9)),
        ('output: "two\n  lines {{inptu.x}}"', (1, 13)),
        ("output: two\n  lines {{inptu.x}}", (1, 13)),
    ],
)
def test_a_string_of_several_lines_is_pointed_at_and_the_place_said(
    text: str, within: tuple[int, int]
) -> None:
    (finding,) = [one for one in lint(text, format="yaml") if "inptu" in one.message]
    assert (finding.line, finding.column, finding.within) == (1, 9, within)
    assert f"column {within[1]}" in str(finding)


@pytest.mark.parametrize(
    ("text", "form", "pointer", "place"),
    [
        ('{\n "nodes": [{"id": 7}],\n "foo": {"a": 1}}', "json", "/foo", (3, 2)),
        ('{\n "nodes": [{"id": 7}],\n "foo": {"a": 1}}', "json", "/nodes/0/id", (2, 19)),
        ("foo: 1\nnodes:\n  - id: 7\n    type:\n", "yaml", "/foo", (1, 1)),
        ("foo: 1\nnodes:\n  - id: 7\n    type:\n", "yaml", "/nodes/0/id", (3, 9)),
        ("foo: 1\nnodes:\n  - id: 7\n    type:\n", "yaml", "/nodes/0", (3, 5)),
        ("nodes: &n\n  - {id: 7}\noutput: *n\nx: 1", "yaml", "/nodes/0/id", (2, 10)),
        ("a: 1\nb: 2\na: 3\n", "yaml", "/a", (3, 1)),
        ('{"a": 1,\n"a": 2}', "json", "/a", (2, 1)),
    ],
)
def test_an_unknown_key_is_pointed_at_itself_and_a_wrong_value_at_the_value(
    text: str, form: Format, pointer: str, place: tuple[int, int]
) -> None:
    found = {(f.pointer, (f.line, f.column)) for f in lint(text, format=form)}
    assert (pointer, place) in found
