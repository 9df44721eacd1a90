"""The `input` schema of a document: every mistake in it is found when the document is loaded."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from perdure.graph import Graph, lint
from perdure.graph.inputs.bounds import MAX_SIZE
from perdure.graph.inputs.check import input_check
from perdure.model.graph_rules import Finding
from tests.unit.graph.documents import ORDER, problems

OBJECT = {"type": "object", "properties": {"order_id": {"type": "string"}}}


def of(schema: Any) -> list[Finding]:
    """What a document with this schema is refused for."""
    return problems({**ORDER, "input": schema})


@pytest.mark.parametrize(
    "schema", [OBJECT, {}, True, False, {"$ref": "#/$defs/a", "$defs": {"a": {}}}]
)
def test_a_document_with_a_sound_schema_loads(schema: Any) -> None:
    assert of(schema) == []


def test_the_schema_is_part_of_what_the_definition_is() -> None:
    assert Graph.load({**ORDER, "input": OBJECT}).hash != Graph.load(ORDER).hash
    assert Graph.load({**ORDER, "input": None}).plan.name == "order"


def test_without_the_extra_a_document_with_a_schema_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastjsonschema", None)
    (problem,) = of(OBJECT)
    assert problem.text == (
        "/input: a schema of the input needs the extra [schema]; pip install 'perdure[schema]'"
    )
    assert problems(ORDER) == []


WRONG: list[tuple[Any, str, str]] = [
    ("text", "", 'this is "text", not a schema; write {"type": "object"}'),
    ([], "", "this is a list, not a schema"),
    (
        {"requierd": []},
        "/requierd",
        '"requierd" is not a keyword that is checked; did you mean "required"?',
    ),
    ({"patternProperties": {}}, "/patternProperties", "use propertyNames with a pattern"),
    ({"$id": "http://x/"}, "/$id", "references are to places of this schema"),
    ({"unevaluatedProperties": False}, "/unevaluatedProperties", "not a keyword that is checked"),
    ({"contentEncoding": "base64"}, "/contentEncoding", "not a keyword that is checked"),
    ({"properties": {"a": {"typ": "string"}}}, "/properties/a/typ", 'did you mean "type"?'),
    ({"$defs": {"a": {"typ": 1}}}, "/$defs/a/typ", 'did you mean "type"?'),
    ({"type": "strin"}, "/type", '"strin" is no type; did you mean "string"?'),
    ({"type": ["string", 1]}, "/type", "1 is no type"),
    ({"type": ["string", "string"]}, "/type", "a type is there twice"),
    ({"type": []}, "/type", "a list is no type"),
    ({"type": [{}]}, "/type", "an object is no type"),
    ({"minimum": "1"}, "/minimum", 'this is "1", not a number'),
    ({"minimum": True}, "/minimum", "this is true, not a number"),
    ({"multipleOf": 0}, "/multipleOf", "this is not above 0"),
    ({"minLength": -1}, "/minLength", "-1 is no count"),
    ({"minLength": 1.5}, "/minLength", "1.5 is no count"),
    ({"maxItems": "x"}, "/maxItems", '"x" is no count'),
    ({"required": "a"}, "/required", 'this is "a", not a list of names'),
    ({"required": ["a", "a"]}, "/required", "a name is there twice"),
    ({"required": [{}]}, "/required", "not a list of names"),
    (
        {"required": ["a"], "properties": {"b": {}}, "additionalProperties": False},
        "/required/0",
        '"a" is required, and not let in',
    ),
    ({"enum": []}, "/enum", "this is no list of values"),
    ({"enum": "a"}, "/enum", "this is no list of values"),
    ({"uniqueItems": 1}, "/uniqueItems", "this is 1, not true or false"),
    ({"properties": []}, "/properties", "properties is a list, not an object"),
    ({"properties": {"a": 1}}, "/properties/a", "this is 1, not a schema"),
    ({"items": 1}, "/items", "this is 1, not a schema"),
    ({"items": [1]}, "/items/0", "this is 1, not a schema"),
    ({"prefixItems": {}}, "/prefixItems", "prefixItems is an object, not a list of schemas"),
    ({"anyOf": {}}, "/anyOf", "anyOf is an object, not a list of schemas"),
    ({"anyOf": []}, "/anyOf", "anyOf is a list, not a list of schemas"),
    ({"not": []}, "/not", "this is a list, not a schema"),
    ({"dependentRequired": {"a": "b"}}, "/dependentRequired/a", "not a list of names"),
    ({"pattern": "("}, "/pattern", "the pattern cannot be used"),
    (
        {"pattern": "(?=a)"},
        "/pattern",
        "lookaround is not supported; patterns have the syntax of RE2",
    ),
    ({"pattern": "(a)\\1"}, "/pattern", "back-references are not supported"),
    ({"pattern": 1}, "/pattern", "pattern is 1, not text"),
    ({"format": "emial"}, "/format", 'the format "emial" is not checked; did you mean "email"?'),
    ({"format": []}, "/format", "format is a list, not text"),
    ({"$ref": "http://127.0.0.1/x"}, "/$ref", "is not in this schema, and nothing else is read"),
    ({"$ref": "file:///etc/passwd"}, "/$ref", "is not in this schema, and nothing else is read"),
    ({"$ref": "other.json#/a"}, "/$ref", "is not in this schema"),
    ({"$ref": "#name"}, "/$ref", "is not in this schema"),
    ({"$ref": 1}, "/$ref", "1 is not in this schema"),
    ({"$ref": "#/$defs/a"}, "/$ref", 'leads nowhere: there is no "$defs"'),
    ({"$ref": "#/enum/7", "enum": [1]}, "/$ref", 'leads nowhere: there is no "7"'),
    ({"$ref": "#"}, "", "this schema refers to itself without end"),
    ({"anyOf": [{"$ref": "#"}]}, "", "this schema refers to itself without end"),
    (
        {
            "$ref": "#/$defs/a",
            "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}},
        },
        "",
        "refers to itself without end",
    ),
    ({"enum": ["x" * MAX_SIZE]}, "", "the schema is too large"),
]


@pytest.mark.parametrize(("schema", "below", "message"), WRONG)
def test_a_mistake_in_a_schema_is_a_problem_of_its_place(
    schema: Any, below: str, message: str
) -> None:
    problem = of(schema)[0]
    assert message in problem.text
    assert problem.pointer.startswith(f"/input{below}")


def test_all_mistakes_are_told_and_each_once() -> None:
    schema = {
        "properties": {"a": {"typ": 1}, "b": {"type": "x"}, "c": {"$ref": "#/$defs/d"}},
        "$defs": {"d": {"minimum": "x"}, "e": {"$ref": "#/$defs/d"}},
    }
    assert [problem.pointer for problem in of(schema)] == [
        "/input/$defs/d/minimum",
        "/input/properties/a/typ",
        "/input/properties/b/type",
    ]


def test_mistakes_have_line_and_column() -> None:
    text = "name: g\nnodes: [{id: a, type: FORK}]\ninput:\n  type: object\n"
    text += "  requierd: [a]\n  minProperties: x\n"
    found = [one for one in lint(text, format="yaml") if one.severity == "error"]
    assert [(one.line, one.column) for one in found] == [(5, 3), (6, 18)]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"next": {"$ref": "#"}}},
        {"items": {"$ref": "#"}},
        {"$defs": {"t": {"properties": {"l": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"},
    ],
)
def test_a_schema_may_refer_to_itself_further_down(schema: Any) -> None:
    assert of(schema) == []


def test_a_schema_is_made_into_a_check_once() -> None:
    first = input_check(OBJECT, "/input", [])
    assert first is not None
    assert input_check(dict(reversed(OBJECT.items())), "/input", []) is first
