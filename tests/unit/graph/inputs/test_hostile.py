"""Schemas and inputs that mean harm: nothing of them runs, and nothing of them takes for ever."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.graph import Graph
from perdure.graph.inputs import code
from perdure.graph.inputs.check import InputCheck, input_check
from perdure.graph.inputs.code import UnsafeCode, check_tree
from perdure.model.errors import InvalidRequest
from perdure.model.graph_rules import Finding
from tests.unit.graph.documents import ORDER, problems

NASTY = [
    *('"', "'", "\\", '\\"', "\n", "\r", "\x00", "{", "}", "{{", "{}", "{0}", "{data}", "{x.y}"),
    *('"); import os; ("', "''' + str(1) + '''", "__class__", "{data.__class__}", "%s", "\u2028"),
    *(
        "data",
        "len",
        "",
        " ",
        "a.b",
        "a[0]",
        "é",
        "𝄞",
        "~0",
        "a/b",
        "$ref",
        "definitions",
        "\\N{DASH}",
    ),
]
NAMES = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def check(schema: Any) -> InputCheck:
    findings: list[Finding] = []
    made = input_check(schema, "/input", findings)
    assert made is not None, findings
    return made


@settings(deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=4, unique=True))
def test_names_of_fields_are_names_and_nothing_else(names: list[str]) -> None:
    inner = {"properties": {name: {"type": "null"} for name in names}, "required": names}
    schema = {**inner, "additionalProperties": {"$ref": "#/$defs/more"}, "$defs": {"more": inner}}
    fits = check(schema)
    good: dict[str, Any] = dict.fromkeys(names)
    assert fits.problems(good) == []
    for name in names:
        assert fits.problems({**good, name: 1}) == [
            f"input.{name} must be null, and is a whole number"
        ]
        (problem,) = fits.problems({key: None for key in names if key != name})
        assert problem == f'input: "{name}" is missing'


@settings(deadline=None)
@given(VALUES, VALUES)
def test_values_of_a_schema_are_values_and_nothing_else(mine: Any, other: Any) -> None:
    same = json.dumps(mine, sort_keys=True) == json.dumps(other, sort_keys=True)
    for schema in ({"const": mine}, {"enum": [mine]}, {"items": {"enum": [mine]}}):
        listed = "items" in schema
        assert check(schema).problems([mine] if listed else mine) == []
        assert bool(check(schema).problems([other] if listed else other)) is not same


KEYS = "type enum required items $ref format properties minimum pattern anyOf dependencies $defs"


@settings(deadline=None, max_examples=200)
@given(st.dictionaries(st.sampled_from(KEYS.split()), VALUES))
def test_whatever_a_schema_is_a_document_loads_or_is_refused(schema: Any) -> None:
    for problem in problems({**ORDER, "input": schema}):
        assert problem.pointer.startswith("/input")


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "from os import system",
        "def f(data):\n    import os",
        "def f(data):\n    return data.__class__",
        "def f(data):\n    return __import__('os')",
        "def f(data):\n    return (lambda: 1)()",
        "def f(data):\n    global x",
        "def f(data):\n    with data: pass",
        "def f(data):\n    return [x for x in data]",
        "def f(data):\n    return f'{data}'",
        "def f(data):\n    return data.pop()",
        "@f\ndef g(data): pass",
        "print(1)",
        "class A: pass",
    ],
)
def test_code_that_no_validator_needs_is_refused(text: str) -> None:
    with pytest.raises(UnsafeCode):
        check_tree(ast.parse(text))


def test_unsafe_code_is_a_problem_of_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    import fastjsonschema

    evil = "def validate(data, a, b): data.__class__"
    monkeypatch.setattr(fastjsonschema, "compile_to_code", lambda *_, **__: evil)
    (problem,) = problems({**ORDER, "input": {"title": "unsafe"}})
    assert problem.pointer == "/input"
    assert "code that is not let run (line 1: .__class__)" in problem.message


def test_a_builtin_that_is_not_given_does_not_exist() -> None:
    assert not {"open", "eval", "exec", "getattr", "__import__", "print"} & set(code._BUILTINS)


def test_a_pattern_that_other_engines_never_finish_ends() -> None:
    fits = check({"pattern": "^(a+)+$"})
    assert fits.problems("a" * 50_000) == []
    assert fits.problems("a" * 50_000 + "b") != []
    assert check({"format": "email"}).problems("a@" + "." * 100_000 + "@") != []
    assert check({"format": "hostname"}).problems("a-" * 100_000) != []


def test_an_input_that_would_be_checked_for_ever_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(code._Checks, "left", 10_000)
    way = {"properties": {"a": {"$ref": "#"}}, "required": ["x"]}
    value: dict[str, Any] = {}
    for _ in range(60):
        value = {"a": value, "x": 1}
    assert check({"anyOf": [way, {**way, "title": "again"}]}).problems(value) == [
        "input: checking it against the schema takes too long"
    ]


def test_every_input_has_the_whole_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code._Checks, "left", 100)
    fits = check({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"properties": {"b": {}}}}})
    for _ in range(5):
        assert fits.problems([{}] * 90) == []


def test_an_input_nested_too_deeply_is_refused() -> None:
    graph = Graph.load({**ORDER, "input": {"items": {"$ref": "#"}}})
    graph.check_input(b"[" * 50 + b"]" * 50)
    for depth in (900, 100_000):
        with pytest.raises(InvalidRequest, match="nested too deeply"):
            graph.check_input(b"[" * depth + b"]" * depth)


def test_a_deep_schema_is_checked_to_its_bottom() -> None:
    schema: dict[str, Any] = {"type": "null"}
    value: Any = None
    for level in range(28):
        schema = {"items": schema} if level % 2 else {"properties": {"a": schema}}
        value = [value] if level % 2 else {"a": value}
    fits = check(schema)
    assert fits.problems(value) == []
    assert len(fits.problems(json.loads(json.dumps(value).replace("null", "1")))) == 1
