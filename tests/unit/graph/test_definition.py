"""Graph: what a definition says of itself, and the identity every process gives it."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from perdure.graph import Graph
from perdure.kernel.machine import GraphMachine
from perdure.kernel.protocol import Deps
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from tests.unit.graph.documents import ORDER, changed, document

DAY = 86_400_000_000


def reordered(value: Any) -> Any:
    """The same JSON value with the keys of all objects the other way round."""
    if isinstance(value, dict):
        return {key: reordered(member) for key, member in reversed(value.items())}
    return [reordered(item) for item in value] if isinstance(value, list) else value


def test_a_graph_is_a_definition_of_its_own_kind() -> None:
    graph = Graph.load({**ORDER, "description": "From order to parcel"})
    assert isinstance(graph, Definition)
    assert (graph.kind, graph.name, graph.description) == ("graph", "order", "From order to parcel")
    assert (graph.max_duration, graph.retention) == (None, 30 * DAY)
    assert repr(graph) == f"<Graph order version {graph.version}>"


def test_a_graph_is_made_by_loading_only() -> None:
    with pytest.raises(TypeError, match=r"use Graph\.load\(document\) or Graph\.read\(path\)"):
        Graph()


@pytest.mark.rule("W-8")
def test_durations_of_a_document_are_microseconds() -> None:
    graph = Graph.load({**ORDER, "max_duration": "7d", "retention": 3600})
    assert (graph.max_duration, graph.retention) == (7 * DAY, 3_600_000_000)


@pytest.mark.rule("D-36")
def test_the_version_is_a_label_or_the_start_of_the_hash() -> None:
    plain, labelled = Graph.load(ORDER), Graph.load({**ORDER, "version": "3"})
    assert plain.version == plain.hash[:12]
    assert (labelled.version, labelled.plan.version) == ("3", "3")


@pytest.mark.rule("D-36", "G-101")
def test_the_hash_is_that_of_the_canonical_text_and_of_nothing_else() -> None:
    graph = Graph.load(ORDER)
    text = json.dumps(ORDER, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert graph.source == text
    assert graph.hash == graph.plan.hash == sha256(text).hexdigest()


@pytest.mark.rule("D-36")
@pytest.mark.parametrize(
    "same",
    [
        reordered(ORDER),
        json.dumps(ORDER, indent=4),
        json.dumps(reordered(ORDER), ensure_ascii=True).encode(),
        Graph.load(ORDER).source,
    ],
)
def test_spelling_and_order_of_keys_do_not_make_another_definition(same: Any) -> None:
    assert Graph.load(same).hash == Graph.load(ORDER).hash


@pytest.mark.rule("D-36", "G-101")
@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/description", "another"),
        ("/nodes/2/label", "Look"),
        ("/nodes/2/spec/input/by", "bob"),
        ("/edges/1/condition", "{{tasks.fetch.output.body.total > 999}}"),
        ("/output", {"n": 1}),
    ],
)
def test_any_change_makes_another_definition(pointer: str, value: Any) -> None:
    assert Graph.load(changed(pointer, value)).hash != Graph.load(ORDER).hash


def test_whole_and_fractional_numbers_are_not_the_same_document() -> None:
    one, other = ({**ORDER, "output": number} for number in (1, 1.0))
    assert Graph.load(one).hash != Graph.load(other).hash


@pytest.mark.rule("G-65")
def test_a_reloaded_definition_renders_the_same_bytes() -> None:
    spec = {"step": "work", "input": {"z": 1, "a": "{{input.x}}", "m": {"y": 1, "b": 2}}}
    mine = {"name": "g", "nodes": [{"id": "a", "type": "TASK", "spec": spec}]}
    first = Graph.load(mine)
    renderings = [
        json.dumps(graph.plan.nodes["a"].spec.render({"input": {"x": 1}}))
        for graph in (first, Graph.load(first.source), Graph.load(reordered(mine)))
    ]
    assert len(set(renderings)) == 1


def test_text_of_any_script_is_kept() -> None:
    graph = Graph.load({**ORDER, "description": "Größe 𝄞 \u0000 ok"})
    assert json.loads(graph.source)["description"] == "Größe 𝄞 \u0000 ok"
    assert "Größe".encode() in graph.source


def test_a_graph_gives_the_kernel_its_machine() -> None:
    graph = Graph.load(document("a", ""))
    run = Run("7", graph.name, graph.version)
    no_codec: Any = None
    deps = Deps(now=lambda: 0, new_id=lambda: "t1", roll=lambda: 0.5, codec=no_codec)
    machine = graph.machine(run, deps)
    assert isinstance(machine, GraphMachine)
    assert machine.run is run
