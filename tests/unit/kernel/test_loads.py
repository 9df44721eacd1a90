"""Outputs on demand: only what can be read, once, all in one request."""

from __future__ import annotations

import pytest

from perdure.kernel.events import NodeCompleted
from perdure.model.errors import StoreError
from tests.unit.kernel.drawing import chain, cond, edge, fork, join, otherwise, sw, task
from tests.unit.kernel.harness import Harness, dispatched, finish, input_of, plan_of, shown, text


def reloaded(nodes: list[object], edges: list[object], **rest: object) -> Harness:
    return Harness(plan_of(nodes, edges, **rest))  # type: ignore[arg-type]


@pytest.mark.rule("G-69", "G-8")
def test_outputs_are_loaded_only_when_referenced() -> None:
    h = reloaded(
        [task("a"), task("b"), task("c", {"url": "{{tasks.a.output.url}}"}), task("d")],
        chain("a", "b", "c", "d"),
    )
    h.start()
    h.complete("a", {"url": "http://x"})
    assert h.loads == []
    step = h.complete("b", {"huge": True})
    assert h.loads == [("a",)]
    assert input_of(step, "c")["input"] == {"url": "http://x"}
    h.complete("c")
    assert h.loads == [("a",)]


@pytest.mark.rule("G-69")
def test_all_that_a_node_reads_comes_in_one_request_each_output_once() -> None:
    spec = {"x": "{{tasks.a.output.n + tasks.b.output.n}}", "y": "{{tasks.a.output.n}}"}
    h = reloaded([task("a"), task("b"), task("c"), task("z", spec)], chain("a", "b", "c", "z"))
    h.start()
    h.complete("a", {"n": 1})
    h.complete("b", {"n": 2})
    assert input_of(h.complete("c"), "z")["input"] == {"x": 3, "y": 1}
    assert h.loads == [("a", "b")]


@pytest.mark.rule("G-69")
def test_only_completed_nodes_are_asked_for() -> None:
    ask = {"x": "{{has(tasks.a.output) || has(tasks.b.output)}}"}
    h = reloaded(
        [sw("s"), task("a"), task("b"), task("c"), task("z", ask)],
        [cond("s", "a", "false"), otherwise("s", "b"), *chain("b", "c", "z"), edge("a", "z")],
    )
    h.start()
    h.complete("b")
    h.complete("c")
    assert h.loads == [("b",)]


@pytest.mark.rule("G-69")
def test_a_switch_loads_what_it_passes_through_and_what_it_asks_about_together() -> None:
    h = reloaded(
        [task("a"), task("p"), task("q"), sw("s"), task("x")],
        [*chain("a", "p", "q"), edge("q", "s"), cond("s", "x", "tasks.a.output.n > 0")],
    )
    h.start()
    h.complete("a", {"n": 1})
    h.complete("p")
    assert dispatched(h.complete("q", {"big": 1})) == ["x"]
    assert h.loads == [("a",)]  # q's own output came with the event
    two = reloaded(
        [task("a"), fork("f"), task("p"), task("q"), sw("s"), task("x")],
        [
            *[*chain("a", "f", "p", "s"), *chain("f", "q", "s")],
            cond("s", "x", "tasks.a.output.n > 0"),
        ],
    )
    two.start()
    two.complete("a", {"n": 1})
    two.complete("p")
    assert dispatched(two.complete("q")) == ["x"]
    assert two.loads == [("a", "p")]


@pytest.mark.rule("G-69")
def test_a_machine_that_stays_alive_asks_for_nothing() -> None:
    spec = {"x": "{{tasks.a.output.n}}"}
    plan = plan_of([task("a"), task("b"), task("c", spec)], chain("a", "b", "c"))
    h = Harness(plan, live=True)
    h.start()
    h.complete("a", {"n": 1})
    assert input_of(h.complete("b"), "c")["input"] == {"x": 1}
    h.complete("c")
    assert h.loads == []


@pytest.mark.rule("G-69")
def test_what_was_loaded_once_is_not_loaded_again() -> None:
    spec = {"x": "{{tasks.a.output.n}}"}
    plan = plan_of([task("a"), task("b", spec), task("c", spec)], chain("a", "b", "c"))
    h = Harness(plan, live=True)
    h.start()
    h.complete("a", {"n": 1})
    h.reload()
    h.complete("b")
    h.complete("c")
    assert h.loads == [("a",)]


@pytest.mark.rule("G-70")
def test_a_node_whose_reads_cannot_be_told_may_ask_for_every_completed_node() -> None:
    spec = {"x": "{{tasks[input.which].output.n}}"}
    h = reloaded(
        [sw("s"), task("no"), task("a"), task("b"), task("z", spec)],
        [cond("s", "no", "false"), otherwise("s", "a"), *chain("a", "b", "z")],
    )
    h.start({"which": "a"})
    h.complete("a", {"n": 7})
    assert input_of(h.complete("b"), "z")["input"] == {"x": 7}
    assert h.loads == [("s", "a")]


@pytest.mark.rule("G-70")
@pytest.mark.parametrize("live", [True, False])
def test_going_over_all_tasks_meets_them_in_the_order_they_were_reached(live: bool) -> None:
    spec = {"x": "{{tasks.map(id, id + ' ' + tasks[id].status)}}"}
    nodes = [task("a"), task("c", {"x": "{{tasks.b.output}}"}), task("b"), sw("s"), task("no")]
    edges = [*chain("a", "b", "c", "s", "z"), cond("s", "no", "false")]
    h = Harness(plan_of([*nodes, task("z", spec)], edges), live=live)
    h.start()
    for node in ("a", "b"):
        h.complete(node)
    seen = input_of(h.complete("c"), "z")["input"]["x"]
    assert seen == ["a completed", "b completed", "c completed", "s completed"]


@pytest.mark.rule("D-9", "G-55")
def test_outputs_of_fork_and_join_are_known_without_loading() -> None:
    h = reloaded(
        [fork("f"), task("a"), task("b"), join("j"), task("z", {"x": "{{tasks.f.output}}"})],
        [*chain("f", "a", "j", "z"), *chain("f", "b", "j")],
    )
    h.start()
    h.complete("a")
    assert input_of(h.complete("b"), "z")["input"] == {"x": {}}
    assert h.loads == []


@pytest.mark.rule("D-9")
def test_a_missing_output_of_a_completed_node_is_a_store_error_and_never_null() -> None:
    h = reloaded(
        [task("a"), task("b"), task("c", {"x": "{{tasks.a.output}}"})], chain("a", "b", "c")
    )
    h.start()
    h.complete("a", {"n": 1})
    kept = h.outputs.pop("a")
    with pytest.raises(StoreError, match="output of node a was not found"):
        h.complete("b")
    assert h.status("b") == "pending"
    h.outputs["a"] = kept
    assert input_of(h.complete("b"), "c")["input"] == {"x": {"n": 1}}


@pytest.mark.rule("G-71", "G-9", "G-7")
@pytest.mark.parametrize("live", [True, False])
def test_a_store_that_fails_while_loading_aborts_the_event_which_can_be_tried_again(
    live: bool,
) -> None:
    nodes = [task("a"), task("b"), fork("f"), task("x"), task("c", {"x": "{{tasks.a.output}}"})]
    h = Harness(plan_of(nodes, [*chain("a", "b", "f", "x"), edge("f", "c")]), live=live)
    h.start()
    h.complete("a", 5)
    h.reload()
    h.load_error = StoreError("the disk is on fire")
    with pytest.raises(StoreError, match="disk"):
        h.complete("b")
    assert (h.status("b"), h.status("f"), len(h.journal)) == ("pending", "unreached", 2)
    h.load_error = None
    step = h.complete("b")
    assert dispatched(step) == ["x", "c"]
    assert input_of(step, "c")["input"] == {"x": 5}


@pytest.mark.rule("G-71", "D-10")
def test_giving_up_on_a_decision_that_waits_leaves_no_trace() -> None:
    spec = {"b": "{{tasks.b.output}}", "a": "{{tasks.a.output}}"}
    # b stands before a in the document, so its view is made before a turns out to be missing
    h = Harness(plan_of([task("b"), task("a"), task("c", spec)], chain("a", "b", "c")), live=True)
    h.start()
    h.complete("a", {"n": 1})
    h.reload()
    decision = h.machine.apply(NodeCompleted("t002", "b", 0, text({"wrong": True})))
    next(decision)
    assert h.status("b") == "pending"  # also while it waits
    decision.close()
    step = h.complete("b", {"right": True})
    assert input_of(step, "c")["input"] == {"a": {"n": 1}, "b": {"right": True}}


@pytest.mark.rule("D-10")
def test_an_output_reported_in_a_decision_given_up_is_not_seen_by_anyone() -> None:
    see_all = {"seen": "{{tasks.map(id, id + ' ' + tasks[id].status)}}"}
    h = Harness(
        plan_of(
            [task("a"), fork("f"), task("b"), task("c", "{{tasks.a.output}}"), task("d"),
             task("e", see_all)],
            [*chain("a", "f", "b", "c"), *chain("f", "d", "e")],
        ),
        live=True,
    )  # fmt: skip
    h.start()
    h.complete("a")
    h.reload()
    decision = h.machine.apply(NodeCompleted("t003", "b", 0, text({"wrong": True})))
    next(decision)
    decision.close()
    h.fail("b")
    seen = input_of(h.complete("d"), "e")["input"]["seen"]
    assert seen == ["a completed", "f completed", "b failed", "d completed"]


@pytest.mark.rule("G-71", "D-10")
def test_a_decision_given_up_on_and_closed_late_touches_nothing_decided_since() -> None:
    plan = plan_of([task("a"), task("b"), task("c", "{{tasks.a.output}}")], chain("a", "b", "c"))
    h = Harness(plan, live=True)
    h.start()
    h.complete("a", {"n": 1})
    h.reload()
    abandoned = h.machine.apply(NodeCompleted("t002", "b", 0, text({})))
    next(abandoned)
    h.complete("b")
    before = shown(h.run)
    abandoned.close()
    assert shown(h.run) == before
    assert finish(h.complete("c")).status == "completed"


@pytest.mark.rule("G-69", "G-45")
def test_the_output_of_a_run_loads_its_leaves_in_one_request() -> None:
    h = reloaded([fork("f"), task("a"), task("b"), task("c")],
                 [*chain("f", "a"), *chain("f", "b"), *chain("f", "c")])  # fmt: skip
    h.start()
    h.complete("a", 1)
    h.complete("b", 2)
    last = h.complete("c", 3)
    assert h.loads == [("a", "b")]
    assert (finish(last).status, h.output()) == ("completed", {"a": 1, "b": 2, "c": 3})
