"""Structural rules on plain nodes and edges, without any document around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.graph import Edge, GraphShape
from perdure.model.graph_rules import (
    Finding,
    Ranks,
    cycles,
    edge_problems,
    entry_problems,
    repeated_ids,
    unreached,
)


def shape(text: str, **types: str) -> GraphShape:
    """`a>b a?c a:d`: plain, conditional and default edges. Types are TASK unless given."""
    edges = []
    for word in text.split():
        sign = next(sign for sign in ">?:" if sign in word)
        source, target = word.split(sign)
        edges.append(Edge(source, target, sign == "?", sign == ":"))
    nodes = dict.fromkeys(end for edge in edges for end in (edge.source, edge.target))
    return GraphShape({node: types.get(node, "TASK") for node in nodes}, edges)


@st.composite
def forward_graphs(draw: st.DrawFn) -> GraphShape:
    """Graphs whose edges lead from lower to higher numbers only: never a cycle."""
    count = draw(st.integers(1, 12))
    kinds = st.sampled_from(["TASK", "SWITCH", "FORK"])
    types = {f"n{i}": draw(kinds) for i in range(count)}
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    edges = []
    for source, target in sorted(chosen):
        conditional = types[f"n{source}"] == "SWITCH" and draw(st.booleans())
        edges.append(Edge(f"n{source}", f"n{target}", conditional))
    return GraphShape(types, edges)


def test_a_finding_says_where_what_and_what_to_do() -> None:
    assert str(Finding("/nodes/0", "wrong", "a", "mend it")) == "/nodes/0 (node a): wrong; mend it"
    assert str(Finding("", "wrong")) == "wrong"


@pytest.mark.rule("D-23")
def test_an_id_used_twice_names_both_places() -> None:
    (finding,) = repeated_ids([(0, "a"), (1, "b"), (4, "a")])
    assert finding.pointer == "/nodes/4/id"
    assert "/nodes/0" in finding.message


def test_edges_to_unknown_nodes_are_found_at_both_ends() -> None:
    found = list(edge_problems({"ship": "TASK"}, [(3, Edge("shp", "nowhere"))]))
    assert [f.pointer for f in found] == ["/edges/3/from", "/edges/3/to"]
    assert found[0].hint == 'did you mean "ship"?'


@pytest.mark.rule("D-11")
def test_two_edges_between_the_same_nodes_are_refused() -> None:
    types = {"a": "SWITCH", "b": "TASK"}
    edges = [(0, Edge("a", "b", True)), (1, Edge("a", "b", True))]
    (finding,) = edge_problems(types, edges)
    assert (finding.pointer, finding.node) == ("/edges/1", "a")
    assert "the first is /edges/0" in finding.message


@pytest.mark.rule("D-11", "D-7")
@pytest.mark.parametrize("kind", ["TASK", "HTTP", "FORK", "JOIN"])
def test_only_a_switch_has_conditions_and_a_default(kind: str) -> None:
    types = {"a": kind, "b": "TASK", "c": "TASK"}
    edges = [(0, Edge("a", "b", conditional=True)), (1, Edge("a", "c", default=True))]
    found = list(edge_problems(types, edges))
    assert [f.pointer for f in found] == ["/edges/0/condition", "/edges/1/default"]
    assert all(f"a is a {kind}" in f.message for f in found)
    assert list(edge_problems({**types, "a": "SWITCH"}, edges)) == []
    assert list(edge_problems({**types, "a": ""}, edges)) == []


@pytest.mark.rule("D-7")
def test_a_switch_has_one_default_and_it_has_no_condition() -> None:
    types = {"a": "SWITCH", "b": "TASK", "c": "TASK"}
    edges = [(0, Edge("a", "b", True, True)), (1, Edge("a", "c", False, True))]
    found = [(f.pointer, f.message[:16]) for f in edge_problems(types, edges)]
    assert found == [
        ("/edges/0/default", "a default edge h"),
        ("/edges/1/default", "a second default"),
    ]


@pytest.mark.parametrize(
    ("drawn", "expected"),
    [
        ("a>b b>c", []),
        ("a>a", [["a"]]),
        ("a>b b>a", [["a", "b"]]),
        ("s>a a>b b>c c>a", [["a", "b", "c"]]),
        ("a>b b>a c>d d>e e>c", [["a", "b"], ["c", "d", "e"]]),
        ("a>b a>c b>d c>d", []),
        ("a>b b>c c>b c>d", [["b", "c"]]),
    ],
)
def test_cycles_are_named_in_their_order(drawn: str, expected: list[list[str]]) -> None:
    assert cycles(shape(drawn)) == expected


def test_a_long_line_is_walked_without_recursion() -> None:
    drawn = shape(" ".join(f"n{i}>n{i + 1}" for i in range(5000)) + " n5000>n0")
    (cycle,) = cycles(drawn)
    assert len(cycle) == 5001


@given(forward_graphs())
def test_graphs_without_cycles_have_none_found(drawn: GraphShape) -> None:
    assert cycles(drawn) == []


@given(forward_graphs(), st.data())
def test_an_edge_back_to_an_ancestor_is_always_found(
    drawn: GraphShape, data: st.DataObject
) -> None:
    node = data.draw(st.sampled_from(sorted(drawn.types)))
    ancestor = data.draw(st.sampled_from([node, *(n for n in drawn.types if drawn.leads(n, node))]))
    closed = GraphShape(drawn.types, [*drawn.edges, Edge(node, ancestor)])
    (cycle,) = cycles(closed)
    pairs = {(e.source, e.target) for e in closed.edges}
    assert set(zip(cycle, [*cycle[1:], cycle[0]], strict=True)) <= pairs
    assert {node, ancestor} <= set(cycle)


@given(forward_graphs())
def test_ranks_agree_with_walking_the_graph(drawn: GraphShape) -> None:
    ranks = Ranks(drawn)
    for node in drawn.types:
        before = {other for other in drawn.types if ranks.precedes(other, node)}
        assert before == {other for other in drawn.types if drawn.leads(other, node)}


def surely(drawn: GraphShape, node: str) -> set[str]:
    ranks = Ranks(drawn)
    mask = ranks.certain()[node]
    return {other for other in ranks.ancestors if ranks.bit[other] & mask}


@pytest.mark.parametrize(
    ("drawn", "reader", "expected"),
    [
        # Both branches of a fork have run at the join.
        ("f>a f>b a>j b>j", "j", "f a b j"),
        # A switch without a default may choose either, both or none.
        ("s?a s?b a>j b>j", "j", "s j"),
        # Behind one branch only, that branch has run.
        ("s?a s?b a>c", "c", "s a c"),
        # With a default one of them is taken, so what both lead to runs.
        ("s?a s:b a>j b>j", "s", "s j"),
        ("s?a s:b a>j b>j", "j", "s j"),
        # An edge without a condition is always taken.
        ("s?a s>b a>j b>j", "j", "s b j"),
    ],
)
def test_what_surely_ran_is_told_apart_from_what_a_switch_may_skip(
    drawn: str, reader: str, expected: str
) -> None:
    assert surely(shape(drawn, s="SWITCH", f="FORK"), reader) == set(expected.split())


def _runs(drawn: GraphShape, chosen: frozenset[Edge]) -> set[str]:
    """The nodes that run from the first root when the switches choose these edges."""
    running: set[str] = set()
    for node in Ranks(drawn).order:
        active = [e for e in drawn.incoming[node] if e.source in running and e in chosen]
        if active or node in drawn.entries:
            running.add(node)
    return running


@given(forward_graphs(), st.data())
def test_what_is_certain_runs_whatever_is_chosen(drawn: GraphShape, data: st.DataObject) -> None:
    conditional = [e for e in drawn.edges if e.conditional]
    taken = data.draw(st.sets(st.sampled_from(conditional))) if conditional else set()
    running = _runs(drawn, frozenset(set(drawn.edges) - set(conditional) | taken))
    for node in running:
        assert surely(drawn, node) <= running


@pytest.mark.parametrize(
    ("drawn", "entry", "pointers"),
    [
        ("a>b", None, []),
        ("a>c b>c", None, ["/nodes"]),
        ("a>b", "x", ["/entry"]),
        ("a>c b>d", "a", []),
        ("a>b b>c", "b", []),
    ],
)
def test_a_graph_says_where_it_starts(drawn: str, entry: str | None, pointers: list[str]) -> None:
    found = entry_problems(shape(drawn), Ranks(shape(drawn)), entry)
    assert [f.pointer for f in found] == pointers


@pytest.mark.rule("D-6")
@pytest.mark.parametrize("drawn", ["a>j b>j", "b>a b>j a>j"])
def test_an_entry_from_which_a_run_could_only_end_blocked_is_refused(drawn: str) -> None:
    (finding,) = entry_problems(shape(drawn), Ranks(shape(drawn)), "a")
    assert finding.node == "j"
    assert "never reaches b, so j would wait for it for ever" in finding.message


def test_nodes_beside_the_entry_are_told() -> None:
    drawn = shape("a>b c>d")
    assert unreached(drawn, Ranks(drawn), "a") == ["c", "d"]
