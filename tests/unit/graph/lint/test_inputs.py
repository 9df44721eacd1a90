"""Fields of the input, judged by what the document's schema plainly says."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.expr import compile_template
from perdure.graph.input_fields import input_doubts, input_problems
from perdure.graph.templates import Reading

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["order", "total"],
    "additionalProperties": False,
    "properties": {
        "total": {"type": "number"},
        "note": {"type": "string"},
        "order": {"$ref": "#/$defs/order"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
    },
    "$defs": {
        "order": {"type": "object", "properties": {"city": {}}, "required": ["city"]},
        "line": {"type": "object", "properties": {"sku": {}}, "required": ["sku"]},
    },
}


def found(text: str, schema: Any = SCHEMA) -> tuple[list[str], list[str]]:
    """What is refused and what is told of one text."""
    (part,) = compile_template(text).parts
    read = Reading("/output", None, "output", text, part.refs)
    errors, doubts = input_problems(read, schema), input_doubts(read, schema)
    return [f"{e.message}; {e.hint}" for e in errors], [f"{d.message}; {d.hint}" for d in doubts]


def test_a_field_that_a_closed_schema_does_not_have_is_refused() -> None:
    errors, doubts = found("{{input.totl}}")
    said = 'input has no "totl": the input schema has no such field; did you mean "total"?'
    assert errors == [said]
    assert doubts == []


def test_one_that_is_asked_for_is_told() -> None:
    errors, doubts = found("{{has(input.totl)}}")
    assert errors == []
    assert len(doubts) == 1


def test_a_near_miss_in_an_open_schema_is_told() -> None:
    errors, doubts = found("{{input.order.ciyt}}")
    assert errors == []
    assert doubts == ['"ciyt" is not in the input schema of input.order; did you mean "city"?']
    assert found("{{input.order.street}}") == ([], [])


def test_a_field_that_may_be_left_out_is_told() -> None:
    errors, doubts = found("{{input.note}}")
    assert errors == []
    (said,) = doubts
    assert said.startswith("input.note may be left out of the input: then this fails; ")
    assert said.endswith("make it required in the schema, or ask with has(input.note)")


@pytest.mark.parametrize(
    "text",
    [
        "{{input.total}}",
        "{{input.order.city}}",
        "{{has(input.note) ? input.note : ''}}",
        "{{input.?note.orValue('')}}",
        "{{config.totl}}",
    ],
)
def test_what_is_sure_to_be_there_is_fine(text: str) -> None:
    assert found(text) == ([], [])


def test_items_of_lists_are_looked_into() -> None:
    assert any('"skuu"' in one for one in found("{{input.lines[0].skuu}}")[1])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        {"properties": {"a": {}}, "anyOf": [{}]},
        {"$ref": "https://elsewhere.test/schema"},
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"properties": 3},
        {"patternProperties": {"t.*": {}}, "additionalProperties": False},
    ],
)
def test_a_schema_that_says_more_is_not_judged(schema: Any) -> None:
    assert found("{{input.totl.x[3].y}}", schema) == ([], [])
