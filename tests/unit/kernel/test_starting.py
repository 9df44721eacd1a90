"""Starting a run: from the entry or where the start says, or refused with nothing recorded."""

from __future__ import annotations

import msgspec
import pytest

from perdure.kernel.actions import OpenRun
from perdure.kernel.run import Run
from perdure.model.errors import InvalidRequest
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, cond, edge, fork, join, sw, task
from tests.unit.kernel.harness import (
    Harness,
    created,
    dispatched,
    input_of,
    kinds,
    of,
    plan_of,
)


@pytest.mark.rule("G-18", "G-21", "G-105", "G-101")
def test_the_first_record_holds_all_that_the_run_is_pinned_to(draw: Draw) -> None:
    h = draw([task("a")], [], version="3")
    start = h.start(
        {"n": 1}, config={"region": "eu"}, metadata={"team": "x"}, python="3.11", deadline=9
    )
    (opened,) = of(start, OpenRun)
    assert start.actions[0] is opened
    assert (opened.definition, opened.id, opened.version) == ("g", "r1", "3")
    assert (opened.hash, opened.python, opened.deadline) == (h.plan.hash, "3.11", 9)
    run = h.folded()
    assert (run.status, run.version, run.hash) == ("running", "3", h.plan.hash)
    assert (bytes(run.input), bytes(run.config)) == (b'{"n":1}', b'{"region":"eu"}')
    assert (run.metadata, run.deadline) == ({"team": "x"}, 9)


@pytest.mark.rule("G-21", "G-19")
def test_a_snapshot_holds_reached_nodes_only(draw: Draw) -> None:
    assert Run().nodes == {}
    h = draw([task("a"), task("b")], chain("a", "b"))
    h.start()
    assert list(h.nodes) == ["a"]


@pytest.mark.rule("G-20")
def test_a_nodes_state_holds_no_input_and_no_output(draw: Draw) -> None:
    h = draw([task("a", {"big": "{{input.big}}"})], [])
    h.start({"big": "x" * 500})
    h.complete("a", {"big": "y" * 500})
    state = msgspec.json.encode(h.nodes["a"])
    assert b"xxx" not in state
    assert b"yyy" not in state


@pytest.mark.rule("G-11", "G-56")
def test_a_start_may_name_another_node_than_the_entry(draw: Draw) -> None:
    h = draw([task("a"), task("b"), task("c")], chain("a", "b", "c"))
    start = h.start(start_node="b")
    assert dispatched(start) == ["b"]
    assert dispatched(h.complete("b")) == ["c"]
    assert h.status("a") == "unreached"


@pytest.mark.rule("G-11")
def test_the_documents_entry_is_where_runs_start(draw: Draw) -> None:
    h = draw([task("a"), task("b")], [], entry="b")
    assert dispatched(h.start()) == ["b"]


@pytest.mark.rule("G-56")
def test_the_start_node_is_activated_whatever_its_edges_say(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b"), join("j"), task("z")],
             [*chain("f", "a", "j", "z"), *chain("f", "b", "j")])  # fmt: skip
    start = h.start(start_node="j")
    assert created(start, "completed") == ["j"]
    assert dispatched(start) == ["z"]


@pytest.mark.rule("G-98")
def test_a_start_without_a_start_node_is_refused_naming_the_candidates() -> None:
    # Documents are refused earlier; a plan may come from elsewhere.
    plan = plan_of([task("a"), task("b")], [], entry="a")
    h = Harness(msgspec.structs.replace(plan, entry=None))
    with pytest.raises(InvalidRequest, match=r"several nodes without incoming edges \(a, b\)"):
        h.start()
    assert dispatched(h.start(start_node="b")) == ["b"]


@pytest.mark.rule("G-98")
def test_a_start_at_an_unknown_node_is_refused(draw: Draw) -> None:
    h = draw([task("a")], [])
    with pytest.raises(InvalidRequest, match="start node nowhere is not in graph g"):
        h.start(start_node="nowhere")


@pytest.mark.rule("G-98", "D-10")
def test_after_a_refused_start_the_next_one_is_judged_by_its_own_input(draw: Draw) -> None:
    h = draw([fork("f"), sw("s"), task("a", {"n": "{{input.n}}"})],
             [edge("f", "s"), cond("s", "a", "input.go.now")])  # fmt: skip
    with pytest.raises(InvalidRequest):
        h.start({"n": 1})
    assert input_of(h.start({"n": 2, "go": {"now": True}}), "a")["input"] == {"n": 2}


@pytest.mark.rule("G-98")
def test_a_run_starts_once(draw: Draw) -> None:
    h = draw([task("a")], [])
    h.start()
    with pytest.raises(InvalidRequest, match="already started"):
        h.start()
    h.complete("a")
    with pytest.raises(InvalidRequest, match="already started"):
        h.start()


@pytest.mark.rule("G-68", "D-5")
def test_a_start_node_whose_input_cannot_be_resolved_is_recorded_not_refused(draw: Draw) -> None:
    h = draw([task("a", "{{input.gone}}")], [])
    start = h.start({})
    assert kinds(start) == ["OpenRun", "CreateTask", "FinishRun"]
    assert h.run.status == "failed"


@pytest.mark.rule("G-47")
def test_a_graph_of_control_nodes_alone_is_over_at_its_start(draw: Draw) -> None:
    h = draw([fork("f"), join("j")], chain("f", "j"))
    assert kinds(h.start()) == ["OpenRun", "CreateTask", "CreateTask", "FinishRun"]
    assert (h.run.status, h.output()) == ("completed", {"j": {}})
