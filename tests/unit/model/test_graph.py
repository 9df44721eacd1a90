"""The shape of a graph: indexes in the document's order."""

from __future__ import annotations

import pytest

from perdure.model.graph import (
    CHILD,
    CONTROL_TYPES,
    NODE_TYPES,
    WAIT_TYPES,
    WORKER_TYPES,
    Edge,
    GraphShape,
)


def shape(*edges: str, types: str = "TASK") -> GraphShape:
    """`a>b` is an edge from a to b."""
    pairs = [tuple(edge.split(">")) for edge in edges]
    nodes = dict.fromkeys((node for pair in pairs for node in pair), types)
    return GraphShape(nodes, [Edge(source, target) for source, target in pairs])


#      a
#    / | \
#   d  b  c
#   |   \ |
#   e    f
BUSH = shape("a>d", "a>b", "a>c", "b>f", "c>f", "d>e")


@pytest.mark.rule("G-57")
def test_successors_and_edges_keep_the_order_of_the_document() -> None:
    assert BUSH.successors["a"] == ("d", "b", "c")
    assert [edge.source for edge in BUSH.incoming["f"]] == ["b", "c"]
    assert [edge.target for edge in BUSH.outgoing["a"]] == ["d", "b", "c"]


def test_entries_and_leaves_are_the_ends() -> None:
    assert BUSH.entries == ("a",)
    assert BUSH.leaves() == ["f", "e"]


def test_descendants_are_walked_breadth_first() -> None:
    assert BUSH.descendants("a") == ["d", "b", "c", "e", "f"]
    assert BUSH.descendants("c") == ["f"]
    assert BUSH.descendants("e") == []


def test_what_stands_behind_some_is_walked_once() -> None:
    assert BUSH.behind(["d", "b", "e"]) == ["e", "f"]
    assert BUSH.behind(["a", "d"]) == ["d", "b", "c", "e", "f"]
    assert BUSH.behind([]) == []


def test_a_node_leads_to_all_that_can_be_reached_from_it_and_not_to_itself() -> None:
    assert {node for node in BUSH.types if BUSH.leads(node, "f")} == {"a", "b", "c"}
    assert not BUSH.leads("a", "a")


def test_a_node_apart_is_an_entry_and_a_leaf() -> None:
    alone = GraphShape({"a": "TASK"}, [])
    assert (alone.entries, alone.leaves(), alone.descendants("a")) == (("a",), ["a"], [])


def test_types_are_workers_control_waits_or_other_runs() -> None:
    kinds = [*WORKER_TYPES, *CONTROL_TYPES, *WAIT_TYPES, CHILD]
    assert sorted(kinds) == sorted(NODE_TYPES)
