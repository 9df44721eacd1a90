"""CHILD nodes in documents: what they may say, how that is checked and drawn."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import Context, workflow
from perdure.graph import Graph, lint
from perdure.kernel.children import CHILD_KEYS
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding
from tests.unit.graph.draw.pictures import record
from tests.unit.graph.test_schema import SCHEMA, valid


@workflow(max_duration="1h")
async def payment(ctx: Context, cents: int) -> int:
    return cents


@workflow(max_duration="1h")
async def nothing(ctx: Context) -> None: ...


KNOWN: dict[str, Any] = {"payment": payment, "nothing": nothing}


def document(spec: Any, **rest: Any) -> dict[str, Any]:
    return {"name": "order", "nodes": [{"id": "pay", "type": "CHILD", "spec": spec, **rest}]}


def found(spec: Any) -> list[Finding]:
    return lint(document(spec), definitions=KNOWN)


@pytest.mark.parametrize(
    "spec",
    [
        {"workflow": "payment"},
        {"workflow": "{{input.kind}}", "id": "pay-{{input.id}}", "input": {"cents": 5}},
        {"workflow": "payment", "id": 5, "input": None},
        {"workflow": "payment", "id": None},
        "{{input}}",
    ],
)
def test_what_a_child_may_say_loads_and_is_valid(spec: Any) -> None:
    whole = document(spec, retry={"attempts": 3}, timeout="1h", label="Pay")
    Graph.load(whole)
    assert valid(whole, SCHEMA)


@pytest.mark.parametrize(
    ("spec", "pointer", "text"),
    [
        (None, "/nodes/0", '"spec" is missing: a CHILD needs one'),
        ({}, "/nodes/0/spec", '"workflow" is missing'),
        ({"workflow": 5}, "/nodes/0/spec/workflow", "not text"),
        ({"workflow": "A b"}, "/nodes/0/spec/workflow", "workflow 'A b' is not valid"),
        ({"workflow": "payment", "id": ""}, "/nodes/0/spec/id", "use a non-empty string"),
        ({"workflow": "payment", "id": ["x"]}, "/nodes/0/spec/id", "use a non-empty string"),
        ({"workflow": "payment", "input": "{{secrets.x}}"}, "/nodes/0/spec/input", "no secrets"),
        ({"workflow": "payment", "step": "x"}, "/nodes/0/spec/step", "there is no key"),
    ],
)
def test_what_it_may_not_say_is_told_where_it_stands(spec: Any, pointer: str, text: str) -> None:
    with pytest.raises(GraphError) as caught:
        Graph.load(document(spec))
    (problem,) = caught.value.problems
    assert isinstance(problem, Finding)
    assert problem.pointer == pointer
    assert text.replace("no secrets", "read secrets") in str(problem)
    if "secrets" not in text:
        assert not valid(document(spec), SCHEMA)


def test_the_schema_has_its_keys() -> None:
    assert sorted(SCHEMA["$defs"]["child"]["properties"]) == sorted(CHILD_KEYS)


@pytest.mark.parametrize(
    ("spec", "severity", "pointer", "text"),
    [
        ({"workflow": "paymant"}, "warning", "workflow", 'did you mean "payment"?'),
        ({"workflow": "zebra"}, "warning", "workflow", "list it with --app, or publish it"),
        ({"workflow": "payment", "input": "x"}, "error", "input", "give what payment asks for"),
        ({"workflow": "payment", "input": [1]}, "error", "input", "Expected `int`, got `array`"),
        ({"workflow": "payment"}, "error", "", "payment needs an input, and none was given"),
        ({"workflow": "payment", "id": "x"}, "warning", "", "unless the run is always there"),
        ({"workflow": "payment", "id": "x", "input": "x"}, "error", "input", "Expected `int`"),
        ({"workflow": "nothing", "input": 1}, "error", "input", "takes no input"),
    ],
)
def test_what_cannot_be_asked_for_is_told(
    spec: Any, severity: str, pointer: str, text: str
) -> None:
    (finding,) = found(spec)
    place = f"/nodes/0/spec/{pointer}" if pointer else "/nodes/0/spec"
    assert (finding.severity, finding.pointer) == (severity, place)
    assert text in str(finding)


@pytest.mark.parametrize(
    "spec",
    [
        {"workflow": "payment", "input": 5},
        {"workflow": "payment", "input": "{{input.cents}}"},
        {"workflow": "payment", "input": {"a": ["{{input.cents}}"]}},
        {"workflow": "{{input.kind}}", "input": "x"},
        {"workflow": "nothing"},
        {"workflow": "order", "id": "again", "input": 1},
    ],
)
def test_what_only_a_run_can_tell_is_not_judged(spec: Any) -> None:
    assert found(spec) == []


def test_nothing_is_said_where_it_is_not_known_what_there_is() -> None:
    assert lint(document({"workflow": "paymant"})) == []


def test_its_drawing_says_what_it_asks_for_and_how_that_went() -> None:
    graph = Graph.load(document({"workflow": "payment"}, retry={"attempts": 3}))
    assert "run of payment · up to 3×" in graph.svg()
    assert "run of payment" in graph.mermaid()
    history = [
        record("OpenRun", definition="order", id="1"),
        record("CreateTask", "pay", status="pending"),
        record("StartChild", "pay", definition="payment", id="order/1/pay", attempt=1),
    ]
    assert "run payment/order/1/pay" in graph.svg(history)
    assert 'class="of-CHILD is-running"' in graph.svg(history)
