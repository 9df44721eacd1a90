"""The plan says what each node may read, how a SWITCH chooses, and where a run starts."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.graph import Graph
from perdure.kernel.plan import PlannedEdge
from tests.unit.graph.documents import ORDER, changed, document, task


def reads(drawn: dict[str, Any]) -> dict[str, tuple[str, ...] | None]:
    return {node.id: node.reads for node in Graph.load(drawn).plan.nodes.values()}


@pytest.mark.rule("G-69")
def test_a_node_reads_what_its_templates_name_in_the_order_of_the_document() -> None:
    drawn = document("a b c", "a>b b>c")
    drawn["nodes"][2] = task("c", {"x": "{{tasks.b.output}}", "y": "{{tasks.a.output + 1}}"})
    assert reads(drawn) == {"a": (), "b": (), "c": ("a", "b")}


@pytest.mark.rule("G-69")
def test_an_output_that_no_template_names_is_not_kept() -> None:
    drawn = document("a b c", "a>b b>c", output="{{input.x}}")
    drawn["nodes"][2] = task("c", {"x": "{{tasks.a.output}}"})
    assert Graph.load(drawn).plan.referenced == frozenset({"a"})


@pytest.mark.rule("G-70")
def test_a_computed_reference_may_be_any_node() -> None:
    drawn = document("a b c", "a>b b>c")
    drawn["nodes"][2] = task("c", {"x": "{{tasks[input.which].output}}", "y": "{{tasks.a.output}}"})
    assert reads(drawn) == {"a": (), "b": (), "c": None}
    assert Graph.load(drawn).plan.referenced is None


@pytest.mark.rule("G-58")
def test_a_switch_reads_for_its_conditions_and_passes_its_predecessors_on() -> None:
    plan = Graph.load(ORDER).plan
    assert plan.nodes["route"].reads == ("fetch",)
    drawn = document("a b s:SWITCH c d", "a>b b>s s?c s:d", output=1)
    drawn["edges"][2]["condition"] = "{{tasks.a.output.ok}}"
    assert reads(drawn)["s"] == ("a", "b")
    assert Graph.load(drawn).plan.referenced == frozenset({"a", "b"})


def test_the_output_counts_among_what_is_read() -> None:
    plan = Graph.load(ORDER).plan
    assert plan.output_reads == ("ship",)
    assert plan.referenced == frozenset({"fetch", "ship"})
    assert plan.output is not None
    assert plan.output.render({"tasks": {"ship": {"output": 7}}}) == {"tracking": 7}


def test_without_an_output_there_is_none() -> None:
    plan = Graph.load(document("a", "")).plan
    assert (plan.output, plan.output_reads) == (None, ())


@pytest.mark.rule("D-7", "G-57")
def test_choices_keep_the_order_of_the_document() -> None:
    drawn = document("s:SWITCH a b c", "s?a s>b s:c")
    choices = Graph.load(drawn).plan.choices
    assert list(choices) == ["s"]
    first, second, third = choices["s"]
    assert (second, third) == (PlannedEdge("b"), PlannedEdge("c", default=True))
    assert (first.target, first.default) == ("a", False)
    assert first.condition is not None
    assert [first.condition.evaluate({"input": {"x": x}}) for x in ("a", "b")] == [True, False]


def test_a_switch_without_edges_chooses_from_nothing() -> None:
    assert Graph.load(document("a s:SWITCH", "a>s")).plan.choices == {"s": ()}


@pytest.mark.rule("G-57")
def test_nodes_and_edges_keep_the_order_of_the_document() -> None:
    plan = Graph.load(document("z a m", "z>m z>a")).plan
    assert list(plan.nodes) == list(plan.shape.types) == ["z", "a", "m"]
    assert plan.shape.successors["z"] == ("m", "a")


@pytest.mark.parametrize(
    ("edges", "entry", "expected"),
    [("a>b b>c", None, "a"), ("a>b b>c", "b", "b"), ("a>b", "c", "c"), ("c>b b>a", None, "c")],
)
def test_a_run_starts_at_the_one_root_or_where_the_document_says(
    edges: str, entry: str | None, expected: str
) -> None:
    drawn = document("a b c", edges)
    assert Graph.load({**drawn, "entry": entry}).plan.entry == expected


@pytest.mark.parametrize(
    ("key", "value", "field", "expected"),
    [
        ("label", "Ship it", "label", "Ship it"),
        ("timeout", "90s", "timeout", 90_000_000),
    ],
)
def test_options_of_a_node_reach_the_plan(key: str, value: Any, field: str, expected: Any) -> None:
    plan = Graph.load(changed(f"/nodes/3/{key}", value)).plan
    assert getattr(plan.nodes["ship"], field) == expected
    assert getattr(plan.nodes["review"], field) is None


@pytest.mark.rule("D-17")
@pytest.mark.parametrize("said", [None, "continue"])
def test_a_graph_goes_on_after_a_failure_unless_it_says_otherwise(said: str | None) -> None:
    assert Graph.load(changed("/on_failure", said)).plan.on_failure == (said or "continue")


@pytest.mark.rule("G-66")
def test_a_spec_without_templates_is_constant_and_others_render_to_plain_json() -> None:
    plan = Graph.load(ORDER).plan
    assert plan.nodes["review"].spec.constant
    fetch = plan.nodes["fetch"].spec
    assert not fetch.constant
    assert fetch.render({"input": {"order_id": 7}}) == {"url": "https://shop.test/api/7"}


def test_a_secret_is_named_by_its_place_and_left_out_of_the_rendering() -> None:
    spec = {"url": "https://a.test/", "headers": {"key": "{{secrets.k}}", "n": "{{input.n}}"}}
    node = {"id": "a", "type": "HTTP", "spec": spec}
    template = Graph.load({"name": "g", "nodes": [node]}).plan.nodes["a"].spec
    assert dict(template.secrets) == {"/headers/key": "{{secrets.k}}"}
    rendered = template.render({"input": {"n": 1}})
    assert rendered["headers"] == {"key": "{{secrets.k}}", "n": 1}
