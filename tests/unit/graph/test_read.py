"""JSON text in: what readers of JSON let pass silently is refused here, with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from perdure.graph import Graph
from perdure.graph.read import MAX_BYTES, MAX_DEPTH
from perdure.model.errors import DefinitionError, GraphError
from tests.unit.graph.documents import ORDER, changed, problems

TEXT = json.dumps(ORDER)


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "source", [ORDER, TEXT, TEXT.encode(), b"\xef\xbb\xbf" + TEXT.encode(), "\ufeff" + TEXT]
)
def test_a_mapping_text_and_bytes_give_the_same_definition(source: Any) -> None:
    assert Graph.load(source).source == Graph.load(ORDER).source


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "line 1, column 1: the document is not JSON: .*it is empty"),
        (
            "{\n  'name': 1}",
            r"line 2, column 3: the document is not JSON: .*; is there a comma too many",
        ),
        (
            '{"name": "a"\n "x": 1}',
            r"line 2, column 2: the document is not JSON: .*; is a comma missing before it",
        ),
        ('{"name": "a",}', "line 1, column 1[34]: the document is not JSON"),
        ("order.json", r"is this the name of a file\? Graph.read\(path\) reads files"),
        (b'{"name": "\xff"}', r"line 1, column 11: the document is not UTF-8: byte 10 \(0xff\)"),
        ("[]", "is a list, not an object"),
        ("3", "is a number, not an object"),
        ("null", "is null, not an object"),
        ('"x"', "is a string, not an object"),
        ("true", "is true or false, not an object"),
        (None, "is null, not an object"),
        (7, "is a number, not an object"),
        (object(), "is a object, not an object"),
        ("[" * 100_000, f"nested more than {MAX_DEPTH} levels deep"),
        (" " * (MAX_BYTES + 1), "at most 4,194,304 count"),
        ({"name": nested(MAX_DEPTH + 1)}, f"nested more than {MAX_DEPTH} levels deep"),
        ({"name": [None] * 1_000_001}, "more than 1,000,000 values"),
    ],
)
def test_what_is_no_document_is_refused_with_one_problem(source: Any, message: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        Graph.load(source)
    (problem,) = caught.value.problems
    assert problem.pointer == "" or problem.pointer.startswith("/name/")
    assert isinstance(caught.value, DefinitionError)


@pytest.mark.parametrize(
    ("member", "pointer", "message"),
    [
        ('"description": "a", "description": "b"', "/description", "written more than once"),
        ('"output": {"a": 1, "b": {"c": 1, "c": 1}}', "/output/b/c", "written more than once"),
        ('"output": [0, {"a/b": 1, "a/b": 2}]', "/output/1/a~1b", "written more than once"),
        ('"output": NaN', "/output", "nan is not a number of JSON"),
        ('"output": [1, -Infinity]', "/output/1", "-inf is not a number of JSON"),
        ('"output": 1e999', "/output", "inf is not a number of JSON"),
        ('"output": {"n": 9223372036854775808}', "/output/n", "an integer beyond 64 bits"),
        ('"output": {"n": -9223372036854775809}', "/output/n", "an integer beyond 64 bits"),
        (f'"output": {"9" * 10_000}', "/output", "an integer beyond 64 bits"),
        ('"output": "\\ud800"', "/output", "half a surrogate pair"),
        ('"output": {"\\ud800": 1}', "/output/\\ud800", "half a surrogate pair"),
    ],
)
@pytest.mark.rule("D-28")
def test_a_value_that_json_readers_disagree_on_is_refused_where_it_stands(
    member: str, pointer: str, message: str
) -> None:
    found = problems(
        TEXT[:-1].replace(', "output": {"tracking": "{{tasks.ship.output}}"}', "") + f", {member}}}"
    )
    assert [problem.pointer for problem in found] == [pointer]
    assert message in found[0].message


@pytest.mark.rule("D-28")
@pytest.mark.parametrize("number", [2**63 - 1, -(2**63), 1.5, 1e308, 0, -0.0])
def test_numbers_that_every_reader_keeps_pass(number: float) -> None:
    assert problems(changed("/output", number)) == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1: "a"}, "the key 1 is not text"),
        ({"a"}, "a set is not JSON"),
        (b"x", "a bytes is not JSON"),
        (object(), "a object is not JSON"),
        (float("nan"), "nan is not a number"),
    ],
)
def test_a_mapping_of_what_is_not_json_is_refused(value: Any, message: str) -> None:
    (problem,) = problems({**ORDER, "output": value})
    assert problem.pointer == "/output"
    assert message in problem.message


def test_a_value_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {**ORDER}
    endless["output"] = endless
    with pytest.raises(GraphError, match="nested more than"):
        Graph.load(endless)


def test_what_the_caller_does_later_changes_no_definition() -> None:
    mine = changed("/output", {"a": [1]})
    graph = Graph.load(mine)
    mine["output"]["a"].append(2)
    mine["nodes"].clear()
    assert json.loads(graph.source)["output"] == {"a": [1]}
    assert len(graph.plan.nodes) == 4


def test_tuples_count_as_lists() -> None:
    assert Graph.load({**ORDER, "nodes": tuple(ORDER["nodes"])}).hash == Graph.load(ORDER).hash
