"""The one readiness rule, and the walk that follows it."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import CreateTask
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, cond, edge, fork, http, join, otherwise, sw, task
from tests.unit.kernel.harness import Harness, created, dispatched, finish, kinds, of


@pytest.mark.rule("G-48", "G-51", "G-52", "G-53", "G-55")
def test_a_join_waits_for_branches_of_different_lengths(draw: Draw) -> None:
    # f → a1 → a2 ─┐
    #   → b1 ──────┴→ j
    h = draw(
        [fork("f"), task("a1"), task("a2"), task("b1"), task("j")],
        [
            *[edge("f", "a1"), edge("a1", "a2"), edge("f", "b1")],
            *[edge("a2", "j"), edge("b1", "j")],
        ],
    )
    start = h.start()
    assert created(start, "completed") == ["f"]
    assert dispatched(start) == ["a1", "b1"]
    assert dispatched(h.complete("a1")) == ["a2"]
    assert dispatched(h.complete("b1")) == []
    assert dispatched(h.complete("a2")) == ["j"]
    assert finish(h.complete("j")).status == "completed"


@pytest.mark.rule("G-55")
def test_fork_and_join_complete_at_once_with_an_empty_output(draw: Draw) -> None:
    h = draw(
        [fork("f"), task("a"), task("b"), join("j"), task("z")],
        [*chain("f", "a", "j", "z"), *chain("f", "b", "j")],
    )
    (opened,) = of(h.start(), CreateTask)[:1]
    assert (opened.node, opened.status, bytes(opened.output)) == ("f", "completed", b"{}")
    h.complete("a")
    last = h.complete("b")
    assert created(last, "completed") == ["j"]
    assert dispatched(last) == ["z"]


@pytest.mark.rule("G-52")
def test_a_diamond_needs_no_join_node(draw: Draw) -> None:
    h = draw(
        [task("a"), task("b"), task("c"), task("d")],
        [*chain("a", "b", "d"), *chain("a", "c", "d")],
    )
    h.start()
    assert dispatched(h.complete("a")) == ["b", "c"]
    assert dispatched(h.complete("c")) == []
    assert dispatched(h.complete("b")) == ["d"]


@pytest.mark.rule("G-53")
def test_one_event_walks_through_any_number_of_control_nodes(draw: Draw) -> None:
    h = draw(
        [task("a"), fork("f"), sw("s"), fork("g"), join("j"), task("z")],
        [*chain("a", "f", "s", "g", "j", "z"), edge("f", "j")],
    )
    h.start()
    step = h.complete("a")
    assert created(step, "completed") == ["f", "s", "g", "j"]
    assert dispatched(step) == ["z"]


@pytest.mark.rule("G-53", "G-57")
def test_the_walk_is_breadth_first_in_the_order_of_the_edges(draw: Draw) -> None:
    # scenario 1
    h = draw(
        [task("a"), fork("x"), fork("y"), task("y1"), task("x1"), task("x2")],
        [
            *[edge("a", "y"), edge("a", "x")],
            *[edge("x", "x2"), edge("x", "x1"), edge("y", "y1")],
        ],
    )
    h.start()
    assert [t.node for t in of(h.complete("a"), CreateTask)] == ["y", "x", "y1", "x2", "x1"]


@pytest.mark.rule("G-53")
def test_a_node_gets_one_task_however_many_edges_lead_to_it(draw: Draw) -> None:
    h = draw(
        [fork("f"), fork("a"), fork("b"), fork("c"), task("z")],
        [*chain("f", "a", "z"), *chain("f", "b", "z"), *chain("f", "c", "z")],
    )
    start = h.start()
    assert [t.node for t in of(start, CreateTask)] == ["f", "a", "b", "c", "z"]


def skipping_graph(draw: Draw) -> Harness:
    # p → s ─(n > 1)→ hi ─────────┐
    #       ─(n <= 1)→ lo → lo2 ──┴→ merge
    return draw(
        [task("p"), sw("s"), task("hi"), task("lo"), task("lo2"), task("merge")],
        [
            edge("p", "s"),
            cond("s", "hi", "tasks.p.output.n > 1"),
            cond("s", "lo", "tasks.p.output.n <= 1"),
            *chain("lo", "lo2", "merge"),
            edge("hi", "merge"),
        ],
    )


@pytest.mark.rule("G-51", "G-54", "G-60")
def test_a_switch_skips_the_branch_not_taken_and_the_branches_meet_again(draw: Draw) -> None:
    # scenarios 213, 215, 222, 224
    h = skipping_graph(draw)
    h.start()
    step = h.complete("p", {"n": 5})
    assert created(step, "completed") == ["s"]
    assert dispatched(step) == ["hi"]
    assert created(step, "skipped") == ["lo", "lo2"]
    assert h.nodes["s"].branches == ("hi",)
    assert dispatched(h.complete("hi")) == ["merge"]
    assert finish(h.complete("merge")).status == "completed"


@pytest.mark.rule("G-51")
def test_the_longer_branch_taken_meets_the_skipped_shorter_one(draw: Draw) -> None:
    h = skipping_graph(draw)
    h.start()
    assert created(h.complete("p", {"n": 0}), "skipped") == ["hi"]
    h.complete("lo")
    assert dispatched(h.complete("lo2")) == ["merge"]


@pytest.mark.rule("G-54")
def test_each_skipped_node_has_a_task_of_its_own(draw: Draw) -> None:
    h = skipping_graph(draw)
    h.start()
    h.complete("p", {"n": 5})
    tasks = [h.nodes[node].task for node in ("p", "s", "hi", "lo", "lo2")]
    assert tasks == ["t001", "t002", "t003", "t004", "t005"]


@pytest.mark.rule("G-47", "G-51")
def test_a_run_whose_switch_chose_nothing_succeeds(draw: Draw) -> None:
    h = draw(
        [sw("s"), task("a"), task("b"), join("j")],
        [cond("s", "a", "input.go"), *chain("a", "b", "j")],
    )
    start = h.start({"go": False})
    assert created(start, "skipped") == ["a", "b", "j"]
    assert finish(start).status == "completed"
    assert h.output() == {}


@pytest.mark.rule("G-49", "G-51")
def test_a_fork_branch_that_ends_in_a_switch_lets_the_join_finish(draw: Draw) -> None:
    # scenarios 201, 203, 214: the untaken case is upstream of the join and resolves it
    h = draw(
        [fork("f"), task("a"), sw("s"), task("odd"), task("even"), task("b"), join("j"), task("z")],
        [
            *chain("f", "a", "s"),
            cond("s", "odd", "tasks.a.output.odd"),
            otherwise("s", "even"),
            *[edge("odd", "j"), edge("even", "j")],
            *chain("f", "b", "j", "z"),
        ],
    )
    h.start()
    h.complete("b")
    assert created(h.complete("a", {"odd": False}), "skipped") == ["odd"]
    assert h.status("j") == "unreached"
    assert dispatched(h.complete("even")) == ["z"]


@pytest.mark.rule("G-49")
def test_a_switch_may_lead_straight_to_the_join_and_around_it(draw: Draw) -> None:
    # scenario 215: the edge s → j is inactive though s itself completed
    h = draw(
        [sw("s"), task("x"), task("j")],
        [cond("s", "j", "input.straight"), cond("s", "x", "input.around"), edge("x", "j")],
    )
    step = h.start({"straight": False, "around": False})
    assert created(step, "skipped") == ["x", "j"]
    other = draw(
        [sw("s"), task("x"), task("j")],
        [cond("s", "j", "input.straight"), cond("s", "x", "input.around"), edge("x", "j")],
    )
    assert dispatched(other.start({"straight": False, "around": True})) == ["x"]
    assert dispatched(other.complete("x")) == ["j"]


@pytest.mark.rule("G-48", "G-52")
def test_a_join_of_two_decisions_waits_for_one_outcome_of_each(draw: Draw) -> None:
    # scenario 202: (a or b) and (c or d)
    h = draw(
        [fork("f"), sw("s"), sw("t"), task("a"), task("b"), task("c"), task("d"), join("j")],
        [
            *[edge("f", "s"), edge("f", "t")],
            *[cond("s", "a", "input.left"), otherwise("s", "b")],
            *[cond("t", "c", "input.left"), otherwise("t", "d")],
            *[edge(node, "j") for node in "abcd"],
        ],
    )
    assert dispatched(h.start({"left": True})) == ["a", "c"]
    assert "FinishRun" not in kinds(h.complete("a"))
    assert created(h.complete("c"), "completed") == ["j"]


@pytest.mark.rule("G-51")
def test_nothing_is_skipped_while_an_edge_is_unresolved(draw: Draw) -> None:
    # scenarios 214, 218: unresolved is not resolved-empty
    h = draw(
        [fork("f"), sw("s"), task("x"), task("slow"), task("j")],
        [*chain("f", "slow", "j"), edge("f", "s"), cond("s", "x", "false"), edge("x", "j")],
    )
    start = h.start()
    assert created(start, "skipped") == ["x"]
    assert h.status("j") == "unreached"
    assert dispatched(h.complete("slow")) == ["j"]


@pytest.mark.rule("G-50", "G-44")
def test_behind_a_failure_nothing_runs_and_nothing_is_skipped(draw: Draw) -> None:
    # scenarios 204, 219: the join does not complete without b, and is not skipped either
    h = draw(
        [fork("f"), task("a"), task("b"), join("j"), task("z")],
        [*chain("f", "a", "j", "z"), *chain("f", "b", "j")],
    )
    h.start()
    assert kinds(h.fail("b")) == ["FailTask"]
    last = h.complete("a")
    assert kinds(last) == ["CompleteTask", "FinishRun"]
    assert (h.status("j"), h.status("z")) == ("unreached", "unreached")
    assert finish(last).status == "failed"


@pytest.mark.rule("G-50")
def test_a_failed_source_beside_a_skipped_one_is_still_unresolved(draw: Draw) -> None:
    h = draw(
        [fork("f"), sw("s"), task("x"), task("b"), task("j")],
        [edge("f", "s"), edge("f", "b"), cond("s", "x", "false"), edge("x", "j"), edge("b", "j")],
    )
    h.start()
    h.fail("b")
    assert h.status("j") == "unreached"


@pytest.mark.rule("G-48")
def test_a_join_reachable_in_several_ways_is_reached_in_each(draw: Draw) -> None:
    # scenarios 206, 232: the join's inputs are its edges, all of them
    nodes = [sw("s"), task("a"), task("b"), task("c"), join("j"), task("z")]
    edges = [
        *[cond("s", node, f"input.{node}") for node in "abc"],
        *[edge(node, "j") for node in "abc"],
        edge("j", "z"),
    ]
    for chosen in (["a"], ["b"], ["c"], ["a", "b"], ["a", "c"], ["a", "b", "c"]):
        h = draw(nodes, edges)
        assert dispatched(h.start({node: node in chosen for node in "abc"})) == chosen
        for node in chosen[:-1]:
            assert dispatched(h.complete(node)) == []
        assert dispatched(h.complete(chosen[-1])) == ["z"]


@pytest.mark.rule("G-53")
def test_a_worker_node_stops_the_walk_whatever_its_type(draw: Draw) -> None:
    h = draw([http("a"), task("b")], chain("a", "b"))
    assert dispatched(h.start()) == ["a"]
    assert dispatched(h.complete("a")) == ["b"]


@pytest.mark.rule("G-46")
def test_a_run_does_not_end_while_the_last_node_of_a_branch_runs(draw: Draw) -> None:
    # scenario 210
    h = draw(
        [fork("f"), task("a"), task("b"), task("c")],
        [*chain("f", "a"), *chain("f", "b", "c")],
    )
    h.start()
    h.complete("a")
    assert kinds(h.complete("b")) == ["CompleteTask", "CreateTask", "DispatchTask"]
    assert h.run.status == "running"
    assert finish(h.complete("c")).status == "completed"
