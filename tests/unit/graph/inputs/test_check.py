"""Inputs against schemas: what fits, what does not and how it is said."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from perdure.graph.inputs.check import InputCheck, input_check
from perdure.model.errors import InvalidRequest
from perdure.model.graph_rules import Finding


def check(schema: Any) -> InputCheck:
    findings: list[Finding] = []
    made = input_check(schema, "/input", findings)
    assert made is not None, findings
    return made


def said(schema: Any, value: Any) -> list[str]:
    return check(schema).problems(value)


TREE: dict[str, Any] = {
    "$ref": "#/$defs/a-b",
    "$defs": {
        "a-b": {"type": "object", "properties": {"n": {"type": "integer"}, "sub": {"$ref": "#"}}},
        "a_b": {"type": "string"},
    },
}
FITS: list[tuple[Any, Any]] = [
    ({}, None),
    (True, [1]),
    ({"type": "integer"}, 5.0),
    ({"type": "number"}, 5),
    ({"type": ["string", "null"]}, None),
    ({"enum": [1, "a", None, [1], {"a": 1}]}, {"a": 1}),
    ({"const": {"a{": '"\\'}}, {"a{": '"\\'}),
    (
        {"const": {"$ref": "http://127.0.0.1/x", "id": "a"}},
        {"$ref": "http://127.0.0.1/x", "id": "a"},
    ),
    ({"enum": [1, [{"id": "#"}]]}, [{"id": "#"}]),
    (
        {"properties": {"id": {"const": {"id": "x"}}, "$ref": {"type": "string"}}},
        {"id": {"id": "x"}, "$ref": "y"},
    ),
    ({"pattern": "b+"}, "abbc"),
    ({"pattern": "^a$"}, 5),
    ({"format": "uuid"}, "0190163d-8694-739b-aea5-966c26f8ad90"),
    ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, ["a", 1, 2]),
    ({"items": [{"type": "string"}], "additionalItems": False}, ["a"]),
    (
        {"properties": {"order-id": {"type": "string"}, "orderid": {"type": "integer"}}},
        {"order-id": "a", "orderid": 1},
    ),
    ({"properties": {"": {"type": "null"}, "é": {"type": "string"}}}, {"": None, "é": "x"}),
    ({"additionalProperties": {"type": "integer"}}, {"a": 1}),
    ({"propertyNames": {"pattern": "^[a-z]+$"}}, {"abc": 1}),
    ({"dependentRequired": {"a": ["b"]}}, {"b": 1}),
    (
        {"dependentSchemas": {"a": {"required": ["b"]}}, "dependencies": {"c": ["d"]}},
        {"a": 1, "b": 2},
    ),
    (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
        {"c": 1},
    ),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, 1),
    ({"not": {"type": "null"}}, 1),
    ({"contains": {"const": 3}}, [1, 3]),
    ({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}]),
    ({"multipleOf": 0.01}, 19.01),
    (TREE, {"n": 1, "sub": {"n": 2, "sub": {}}}),
]


@pytest.mark.parametrize(("schema", "value"), FITS)
def test_what_fits_has_no_problems(schema: Any, value: Any) -> None:
    assert said(schema, value) == []


UNFIT: list[tuple[Any, Any, str]] = [
    (False, 1, "input is not let in by the schema"),
    ({"type": "object"}, [1], "input must be an object, and is a list"),
    ({"type": "integer"}, True, "input must be a whole number, and is true or false"),
    ({"type": ["string", "null"]}, 1.5, "input must be text or null, and is a number"),
    (
        {"properties": {"a": {"items": {"type": "string"}}}},
        {"a": ["x", 1]},
        "input.a[1] must be text, and is a whole number",
    ),
    ({"required": ["a", "b"]}, {"b": 1}, 'input: "a" is missing'),
    (
        {"properties": {"order_id": {}}, "additionalProperties": False},
        {"order": 1},
        'input: there is no field "order" in the schema; did you mean "order_id"?',
    ),
    ({"enum": ["a", 1, None]}, "b", 'input must be one of "a", 1, null'),
    ({"enum": [True]}, 1, "input must be one of true"),
    ({"const": 1}, "1", "input must be 1"),
    ({"minimum": 3}, 2, "input must be at least 3"),
    ({"exclusiveMaximum": 3}, 3, "input must be less than 3"),
    ({"multipleOf": 5}, 7, "input must be a multiple of 5"),
    ({"minLength": 2}, "a", "input must have at least 2 characters"),
    ({"maxItems": 1}, [1, 2], "input must have at most 1 items"),
    ({"minProperties": 1}, {}, "input must have at least 1 fields"),
    ({"uniqueItems": True}, [1, 1], "input must not have an item twice"),
    ({"pattern": "^a+$"}, "b", "input must be text with ^a+$ in it"),
    ({"pattern": "^a$"}, "a\n", "input must be text with ^a$ in it"),
    ({"format": "date"}, "2025-02-30", 'input must be a date, such as "2025-06-01"'),
    (
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        1,
        "input fits none of the forms that the schema lets in",
    ),
    (
        {"oneOf": [{"minimum": 1}, {"minimum": 2}]},
        3,
        "input must fit one of the forms of the schema, and one only",
    ),
    ({"not": {"type": "null"}}, None, "input is what the schema does not let in"),
    ({"contains": {"const": 3}}, [1], "input has no item such as the schema asks for"),
    (
        {"propertyNames": {"pattern": "^[a-z]+$"}},
        {"A": 1},
        "input has a field whose name the schema does not let in",
    ),
    (
        {"dependentRequired": {"a": ["b"]}},
        {"a": 1},
        "input lacks a field that another one asks for",
    ),
    ({"if": {"required": ["a"]}, "then": {"required": ["b"]}}, {"a": 1}, 'input: "b" is missing'),
    ({"prefixItems": [{}], "items": False}, [1, 2], "input has more items than the schema lets in"),
    (
        {"properties": {"a{x}\"'\\": {"type": "null"}}},
        {"a{x}\"'\\": 1},
        "input.a{x}\"'\\ must be null, and is a whole number",
    ),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}, "minLength": 9},
        "a",
        "input must have at least 9 characters",
    ),
    (TREE, {"sub": {"sub": {"n": "x"}}}, "input.sub.sub.n must be a whole number, and is text"),
]


@pytest.mark.parametrize(("schema", "value", "message"), UNFIT)
def test_what_does_not_fit_is_said_with_its_place(schema: Any, value: Any, message: str) -> None:
    assert said(schema, value) == [message]


def test_all_problems_are_said_at_once() -> None:
    schema = {
        "required": ["id"],
        "properties": {"n": {"type": "integer"}, "l": {"items": {"maximum": 1}}},
    }
    assert sorted(said(schema, {"n": "x", "l": [2, 1, 3]})) == [
        "input.l[0] must be at most 1",
        "input.l[2] must be at most 1",
        "input.n must be a whole number, and is text",
        'input: "id" is missing',
    ]


def test_the_refusal_names_the_workflow_and_no_value() -> None:
    with pytest.raises(InvalidRequest) as caught:
        check({"properties": {"key": {"type": "integer"}}}).refuse("order", {"key": "hush-hush"})
    assert str(caught.value) == (
        "the input of order does not fit its schema: input.key must be a whole number, and is text"
    )


def test_many_problems_are_counted() -> None:
    with pytest.raises(InvalidRequest, match="and 80 more"):
        check({"items": {"type": "string"}}).refuse("order", [[]] * 100)


def test_no_input_is_told_from_null() -> None:
    with pytest.raises(InvalidRequest, match="input must be an object, and none was given"):
        check({"type": "object"}).refuse("order", None)


def test_a_default_is_for_readers_and_changes_nothing() -> None:
    schema = {"properties": {"a": {"default": 1}, "b": {"properties": {"c": {"default": []}}}}}
    value: dict[str, Any] = {"b": {}}
    before = copy.deepcopy(value)
    assert said(schema, value) == []
    assert value == before


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "date-time",
            ["2025-06-01T12:00:00Z", "2025-06-01t12:00:00.5+02:00"],
            ["2025-06-01", "2025-06-01T12:00:00", "2025-13-01T12:00:00Z", "x"],
        ),
        ("date", ["2024-02-29"], ["2025-02-29", "20250101", "٢٠٢٥-01-01", "2025-1-1"]),
        ("time", ["12:00:00Z", "23:59:60+01:00"], ["12:00", "25:00:00Z"]),
        ("duration", ["PT5M", "P1DT2H", "P3W"], ["P", "PT", "5m", "P1W2D"]),
        ("email", ["ann@example.com", "a.b+c@x.io"], ["ann", "@x", "a b@x.io", ".a@x.io", "a@-x"]),
        ("hostname", ["shop.test", "a"], ["", "-a", "a..b", "a" * 64, "x." * 200]),
        ("ipv4", ["127.0.0.1"], ["127.0.0.256", "127.1", "01.2.3.4"]),
        ("ipv6", ["::1", "fe80::1"], ["::1%eth0", "1", ":::"]),
        ("uri", ["https://a/b?c#d", "urn:x"], ["a/b", "https://a b", ""]),
        ("uuid", ["0190163d-8694-739b-aea5-966c26f8ad90"], ["0190163d8694739baea5966c26f8ad90"]),
    ],
)
def test_a_format_is_checked(name: str, good: list[str], bad: list[str]) -> None:
    assert [text for text in good if said({"format": name}, text)] == []
    assert [text for text in bad if not said({"format": name}, text)] == []
    assert said({"format": name}, 5) == []
