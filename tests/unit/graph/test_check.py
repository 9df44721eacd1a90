"""All problems of a document at once, in its order; and nothing but GraphError, whatever comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.graph import Graph, lint
from perdure.model.errors import GraphError
from tests.unit.graph.documents import ORDER, changed, document, problems

SPOILED: dict[str, Any] = {
    "name": "Order!",
    "versoin": "3",
    "nodes": [
        {"id": "a", "type": "HTTP", "spec": {"url": "shop", "jsn": 1}},
        {"id": "b", "type": "SWITHC"},
        {"id": "a", "type": "TASK", "spec": {"step": "x", "input": "{{tasks.z.output}}"}},
        {"id": "c", "type": "TASK", "spec": {"step": "x", "input": "{{input.}}"}},
        {"id": "d", "type": "TASK", "spec": {"step": "x"}, "retry": {"attempts": 0}},
    ],
    "edges": [
        {"from": "c", "to": "d", "condition": "{{input.x}}"},
        {"from": "d", "to": "c"},
        {"from": "d", "to": "e"},
    ],
}

POINTERS = [
    "/edges",
    "/edges/0/condition",
    "/edges/2/to",
    "/name",
    "/nodes/0/spec/jsn",
    "/nodes/0/spec/url",
    "/nodes/1/type",
    "/nodes/2/id",
    "/nodes/2/spec/input",
    "/nodes/3/spec/input",
    "/nodes/4/retry",
    "/versoin",
]


@pytest.mark.rule("D-24")
def test_every_problem_is_told_at_once_in_the_order_of_places() -> None:
    assert [problem.pointer for problem in problems(SPOILED)] == POINTERS


@pytest.mark.rule("D-24")
def test_the_message_lists_them_all() -> None:
    with pytest.raises(GraphError) as caught:
        Graph.load(SPOILED)
    title, *lines = str(caught.value).splitlines()
    assert title == f"this graph document has {len(POINTERS)} problems:"
    assert lines == [f"  {problem}" for problem in caught.value.problems]


def test_a_sound_name_is_said_and_one_problem_is_one() -> None:
    with pytest.raises(GraphError, match=r"^graph order has 1 problem:\n  /x: "):
        Graph.load({**ORDER, "x": 1})


def test_a_long_list_is_cut_in_the_message_and_whole_in_problems() -> None:
    with pytest.raises(GraphError, match=r"… and 50 more \(all are in \.problems\)$") as caught:
        Graph.load({**ORDER, **{f"x{i}": i for i in range(150)}})
    assert len(caught.value.problems) == 150


def test_places_are_sorted_by_number() -> None:
    nodes = [{"id": f"n{i}", "type": "NO"} for i in range(12)]
    edges = [{"from": f"n{i}", "to": f"n{i + 1}"} for i in range(11)]
    found = problems({"name": "g", "nodes": nodes, "edges": edges})
    assert [p.pointer for p in found] == [f"/nodes/{i}/type" for i in range(12)]


def test_a_circle_is_named() -> None:
    (problem,) = problems(document("s a b c", "s>a a>b b>c c>a"))
    assert problem.message == "the nodes go round in a circle: a → b → c → a"


def test_a_long_circle_is_named_in_short() -> None:
    nodes = " ".join(f"n{i}" for i in range(50))
    edges = " ".join(f"n{i}>n{(i + 1) % 50}" for i in range(50))
    (problem,) = problems(document(nodes, edges))
    assert problem.message.endswith("n8 → n9 → … → n49 → n0")


def test_several_roots_need_an_entry() -> None:
    drawn = document("a b c", "a>c b>c")
    (problem,) = problems(drawn)
    assert problem.message == "2 nodes have no incoming edge (a, b)"
    assert '"entry"' in problem.hint


@pytest.mark.rule("D-6")
def test_an_entry_that_leaves_a_join_waiting_is_refused() -> None:
    (problem,) = problems(document("a b j:JOIN", "a>j b>j", entry="a"))
    assert (problem.pointer, problem.node) == ("/entry", "j")


def test_a_thousand_nodes_load() -> None:
    nodes = " ".join(f"n{i}" for i in range(1000))
    drawn = document(nodes, " ".join(f"n{i}>n{i + 1}" for i in range(999)))
    for index in range(1, 1000):
        text = f"{{{{tasks.n{index - 1}.output.x + tasks.n0.output.y}}}}"
        drawn["nodes"][index]["spec"]["input"] = {"x": text}
    plan = Graph.load(drawn).plan
    assert plan.nodes["n999"].reads == ("n0", "n998")


# -------------------------------------------------------------------------------- whatever comes

WORDS = st.sampled_from(
    ["a", "b", "tasks", "{{input.x}}", "{{tasks.a.output}}", "{{", "SWITCH", "HTTP", "TASK", "1s"]
)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=20,
)
NODE_KEYS = ("id", "type", "spec", "retry", "timeout", "queue", "label")
EDGE_KEYS = ("from", "to", "condition", "default")
LIKELY = st.fixed_dictionaries(
    {
        "name": st.just("g") | JSON,
        "nodes": st.lists(
            st.dictionaries(st.sampled_from(NODE_KEYS), JSON, max_size=5), max_size=4
        ),
        "edges": st.lists(
            st.dictionaries(st.sampled_from(EDGE_KEYS), JSON, max_size=4), max_size=4
        ),
    },
    optional=dict.fromkeys(("entry", "output", "max_duration", "version", "on_failure"), JSON),
)


def harmless(source: Any) -> None:
    """Loading refuses with GraphError or gives a graph that loads again; lint never raises."""
    errors = [finding for finding in lint(source) if finding.severity == "error"]
    if not errors:
        graph = Graph.load(source)
        assert Graph.load(graph.source).hash == graph.hash
        return
    with pytest.raises(GraphError) as caught:
        Graph.load(source)
    assert list(caught.value.problems) == errors
    assert str(caught.value).encode()


@given(JSON)
@example({"²": None, "9" * 5000: None})
def test_any_json_value_is_refused_properly(value: Any) -> None:
    harmless(value)


@given(LIKELY)
@example({"name": "g", "nodes": [{"id": "a", "type": "TASK"}], "edges": [{"from": "a", "to": "a"}]})
def test_what_looks_like_a_document_loads_or_is_refused_properly(value: Any) -> None:
    harmless(value)


@given(st.text() | st.binary())
def test_any_text_is_refused_properly(source: str | bytes) -> None:
    harmless(source)


@st.composite
def spoiled_documents(draw: st.DrawFn) -> dict[str, Any]:
    """The good document with one value anywhere in it replaced by any JSON value."""
    pointers: list[str] = []

    def walk(value: Any, at: str) -> None:
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for key, member in members:
            pointers.append(f"{at}/{key}")
            if isinstance(member, dict | list):
                walk(member, f"{at}/{key}")

    walk(ORDER, "")
    return changed(draw(st.sampled_from(pointers)), draw(JSON))


@given(spoiled_documents())
def test_a_good_document_spoiled_anywhere_loads_or_is_refused_properly(value: Any) -> None:
    harmless(value)


@given(st.integers(0, 10_000), st.integers(0, 40))
def test_a_text_cut_anywhere_is_refused_properly(start: int, length: int) -> None:
    text = json.dumps(ORDER)
    start %= len(text)
    harmless(text[:start] + text[start + length :])


def test_an_edge_that_leads_nowhere_is_not_told_of_nodes_that_it_would_have_reached() -> None:
    task = {"type": "TASK", "spec": {"step": "a"}}
    reads = {"type": "TASK", "spec": {"step": "b", "input": "{{tasks.a.output}}"}}
    document = {
        "name": "g",
        "nodes": [{"id": "a", **task}, {"id": "b", **task}, {"id": "c", **reads}],
        "edges": [{"from": "a", "to": "b"}, {"from": "bb", "to": "c"}],
        "entry": "a",
    }
    with pytest.raises(GraphError) as caught:
        Graph.load(document)
    assert "does not come before" not in str(caught.value)
    assert "/edges/1/from" in [problem.pointer for problem in caught.value.problems]
