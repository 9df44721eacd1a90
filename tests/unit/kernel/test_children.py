"""CHILD nodes: another run is asked for, and its end is the node's."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.kernel.actions import (
    CancelChild,
    CancelTasks,
    CreateTask,
    FailTask,
    RetryTask,
    StartChild,
    Transition,
)
from perdure.kernel.child_ids import call_id, derived_id, id_of_attempt
from perdure.kernel.events import ChildFinished, ChildStarted, TimerFired
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, child, edge, fork, task
from tests.unit.kernel.harness import (
    NEW_YEAR,
    Harness,
    dispatched,
    failure_of,
    finish,
    input_of,
    kinds,
    of,
    plan_of,
    text,
)


def call(h: Harness, node: str) -> str:
    """The id of the call by which the node asks now."""
    state = h.nodes[node]
    return call_id(state.task, state.attempt)


def found(h: Harness, node: str, *, created: bool = True) -> Transition:
    return h.apply(ChildStarted(call(h, node), node, created))


def ended(h: Harness, node: str, output: Any = None) -> Transition:
    """The child completed."""
    return h.apply(ChildFinished(call(h, node), node, "completed", text(output)))


def broke(h: Harness, node: str, failure: FailureRecord, status: Any = "failed") -> Transition:
    return h.apply(ChildFinished(call(h, node), node, status, None, failure))


def due(h: Harness, node: str) -> Transition:
    """The timer of the node fires."""
    state = h.nodes[node]
    when = state.not_before or state.wake_at
    assert when is not None
    h.now = max(h.now, when)
    return h.apply(TimerFired(state.task, node, when))


BOOM = FailureRecord("Boom", "it broke")


@pytest.mark.rule("G-65", "G-66")
def test_a_child_is_asked_for_with_its_resolved_input_and_a_derived_id(draw: Draw) -> None:
    h = draw([child("pay", spec={"input": {"total": "{{input.sum}}"}})], [])
    start = h.start({"sum": 7})
    assert kinds(start) == ["OpenRun", "CreateTask", "StartChild"]
    assert input_of(start, "pay") == {"total": 7}
    (asked,) = of(start, StartChild)
    assert (asked.definition, asked.id, asked.wake_at) == ("pay", "g/r1/pay", None)
    assert dispatched(start) == []
    assert (h.status("pay"), h.run.active) == ("pending", 1)


@pytest.mark.parametrize(
    ("spec", "id"),
    [({"id": "p-{{input.n}}"}, "p-5"), ({"id": "{{input.n}}"}, "5"), ({"id": None}, "g/r1/pay")],
)
def test_its_id_may_be_said(draw: Draw, spec: dict[str, Any], id: str) -> None:
    h = draw([child("pay", "{{input.which}}", spec)], [])
    (asked,) = of(h.start({"n": 5, "which": "payment"}), StartChild)
    assert (asked.definition, asked.id) == ("payment", id)
    assert of(h.recorded()[0], CreateTask)[0].input is None


def test_its_output_is_the_nodes_and_routing_goes_on(draw: Draw) -> None:
    nodes = [child("pay"), task("ship", "{{tasks.pay.output.receipt}}")]
    h = draw(nodes, chain("pay", "ship"))
    h.start()
    assert kinds(found(h, "pay")) == ["ChildFound"]
    step = ended(h, "pay", {"receipt": "r-1"})
    assert kinds(step) == ["CompleteTask", "CreateTask", "DispatchTask"]
    assert input_of(step, "ship")["input"] == "r-1"
    end = h.complete("ship", 3)
    assert finish(end).status == "completed"
    assert h.output() == {"ship": 3}


def test_a_child_may_follow_a_step(draw: Draw) -> None:
    h = draw([task("a"), child("b", spec={"input": "{{tasks.a.output}}"})], chain("a", "b"))
    h.start()
    step = h.complete("a", [1])
    assert kinds(step) == ["CompleteTask", "CreateTask", "StartChild"]
    assert input_of(step, "b") == [1]


@pytest.mark.rule("G-68", "W-3")
@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("{{input.list}}", "a CHILD needs an object"),
        ("{{input.misspelt}}", 'there is no key "worklow" in the spec of a CHILD; did you mean'),
        ({"workflow": "{{input.bad}}"}, "workflow 'No Name' is not valid"),
        ({"workflow": "pay", "id": "{{input.none}}"}, "run id None is not valid"),
        ({"workflow": "pay", "id": "{{system.run_id}}"}, "run 'r1' cannot be its own child"),
        ({"workflow": "pay", "input": "{{1/0}}"}, "zero"),
    ],
)
def test_what_names_no_run_that_can_be_fails_the_node_at_once(
    draw: Draw, spec: Any, why: str
) -> None:
    node = {"id": "pay", "type": "CHILD", "spec": spec, "retry": {"attempts": 3}}
    if why == "zero":
        node["spec"] = {"workflow": "pay", "input": "{{1/input.zero}}"}
    h = draw([node], [])
    step = h.start({"list": [], "misspelt": {"worklow": 1}, "bad": "No Name", "none": None,
                    "zero": 0})  # fmt: skip
    failure = failure_of(Transition(0, of(step, CreateTask)), "pay")
    assert failure.permanent
    assert why in failure.message
    assert finish(step).status == "failed"


def test_a_failing_child_fails_the_node_with_its_failure(draw: Draw) -> None:
    h = draw([child("pay"), task("ship")], chain("pay", "ship"))
    h.start()
    found(h, "pay")
    step = broke(h, "pay", BOOM)
    assert kinds(step) == ["FailTask", "FinishRun"]
    assert failure_of(Transition(0, of(step, FailTask)), "pay") == BOOM
    assert (finish(step).status, h.status("ship")) == ("failed", "unreached")


def test_one_that_others_canceled_fails_the_node_for_good(draw: Draw) -> None:
    h = draw([child("pay", retry={"attempts": 3})], [])
    h.start()
    found(h, "pay")
    step = broke(h, "pay", FailureRecord("Any", "enough"), "canceled")
    (failed,) = of(step, FailTask)
    assert (failed.failure.kind, failed.failure.permanent) == ("workflow.canceled", True)


@pytest.mark.rule("G-39", "G-43")
def test_a_further_attempt_asks_for_a_run_of_its_own_when_it_is_due(draw: Draw) -> None:
    node = child("pay", spec={"id": "p", "input": "{{system.now}}"},
                 retry={"attempts": 3, "initial": 10}, timeout=60)  # fmt: skip
    h = draw([node], [])
    first = h.start()
    assert of(first, StartChild)[0].wake_at == NEW_YEAR + 60 * SECOND
    found(h, "pay")
    old = call(h, "pay")
    (again,) = of(broke(h, "pay", BOOM), RetryTask)
    assert again.not_before == NEW_YEAR + 10 * SECOND
    assert h.nodes["pay"].wake_at is None
    late = h.apply(ChildFinished(old, "pay", "completed", text(1)))
    assert "waits for no child" in (late.ignored or "")
    early = h.apply(TimerFired(again.task, "pay", again.not_before))
    assert "early" in (early.ignored or "")
    step = due(h, "pay")
    (asked,) = of(step, StartChild)
    assert (asked.id, asked.attempt, asked.wake_at) == ("p~2", 1, NEW_YEAR + 70 * SECOND)
    assert kinds(step) == ["StartChild"]
    late = h.apply(ChildFinished(old, "pay", "completed", text(1)))
    assert "older one" in (late.ignored or "")
    found(h, "pay", created=False)
    broke(h, "pay", BOOM)
    assert of(due(h, "pay"), StartChild)[0].id == "p~3"
    assert finish(ended(h, "pay", 5)).status == "completed"
    assert h.output() == {"pay": 5}


def test_a_permanent_failure_is_not_tried_again(draw: Draw) -> None:
    h = draw([child("pay", retry={"attempts": 3})], [])
    h.start()
    assert kinds(broke(h, "pay", FailureRecord("Boom", "no", permanent=True))) == [
        "FailTask", "FinishRun",
    ]  # fmt: skip


def test_a_child_that_takes_too_long_is_let_go_and_counts_as_a_failed_attempt(draw: Draw) -> None:
    h = draw([child("pay", timeout=60, retry={"attempts": 2, "initial": 0})], [])
    h.start()
    found(h, "pay")
    step = due(h, "pay")
    assert kinds(step) == ["CancelChild", "RetryTask"]
    (gone,) = of(step, CancelChild)
    assert (gone.id, gone.attempt, gone.awaited) == ("g/r1/pay", 0, False)
    due(h, "pay")
    step = due(h, "pay")
    assert kinds(step) == ["CancelChild", "FailTask", "FinishRun"]
    assert of(step, CancelChild)[0].id == "g/r1/pay~2"
    assert of(step, FailTask)[0].failure == FailureRecord(
        "workflow.timeout", "run pay/g/r1/pay~2 of node pay took longer than 60 s"
    )


def test_a_timer_of_a_child_that_has_ended_changes_nothing(draw: Draw) -> None:
    h = draw([child("pay", timeout=60), task("ship")], chain("pay", "ship"))
    h.start()
    state = h.nodes["pay"]
    found(h, "pay")
    ended(h, "pay")
    assert state.wake_at is not None
    h.now = state.wake_at
    late = h.apply(TimerFired(state.task, "pay", state.wake_at))
    assert "does not wait any more" in (late.ignored or "")


@pytest.mark.rule("G-36")
def test_what_is_told_twice_counts_once(draw: Draw) -> None:
    h = draw([child("pay"), task("ship")], chain("pay", "ship"))
    h.start()
    id = call(h, "pay")
    found(h, "pay")
    assert "found before" in (found(h, "pay").ignored or "")
    ended(h, "pay")
    again = h.apply(ChildFinished(id, "pay", "completed", text(1)))
    assert "already completed" in (again.ignored or "")
    assert "not reached" in (h.apply(ChildStarted(id, "no", True)).ignored or "")


@pytest.mark.rule("W-34", "D-39")
@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_a_run_that_ends_lets_its_child_go(draw: Draw, how: str) -> None:
    h = draw([child("pay")], [], max_duration="1h")
    h.start(deadline=NEW_YEAR + 3600 * SECOND)
    found(h, "pay")
    if how == "cancel":
        step = h.cancel("enough")
        assert kinds(step) == ["CancelChild", "CancelTasks", "FinishRun"]
    else:
        from perdure.kernel.events import DeadlineReached

        h.advance(3600)
        step = h.apply(DeadlineReached())
        assert kinds(step) == ["CancelChild", "FailTask", "FinishRun"]
    assert of(step, CancelChild)[0].id == "g/r1/pay"


def test_one_that_is_not_asked_for_yet_is_not_let_go(draw: Draw) -> None:
    h = draw([child("pay", retry={"attempts": 2, "initial": 10})], [])
    h.start()
    broke(h, "pay", BOOM)
    assert kinds(h.cancel()) == ["CancelTasks", "FinishRun"]


def forked(draw: Draw, on_failure: str) -> Harness:
    nodes = [fork("f"), task("bad"), child("pay")]
    h = draw(nodes, [edge("f", "bad"), edge("f", "pay")], on_failure=on_failure)
    h.start()
    return h


@pytest.mark.rule("D-17")
def test_cancel_on_failure_lets_the_child_go(draw: Draw) -> None:
    h = forked(draw, "cancel")
    found(h, "pay")
    assert kinds(h.fail("bad")) == ["FailTask", "CancelChild", "CancelTasks", "FinishRun"]


@pytest.mark.rule("D-17")
@pytest.mark.parametrize("known", [True, False])
def test_drain_asks_a_child_of_its_own_to_end_and_waits_for_that(draw: Draw, known: bool) -> None:
    h = forked(draw, "drain")
    if known:
        found(h, "pay")
        step = h.fail("bad")
        assert kinds(step) == ["FailTask", "CancelChild"]
    else:
        assert kinds(h.fail("bad")) == ["FailTask"]
        step = found(h, "pay")
        assert kinds(step) == ["ChildFound", "CancelChild"]
    (order,) = of(step, CancelChild)
    assert (order.id, order.awaited) == ("g/r1/pay", True)
    assert h.status("pay") == "pending"
    end = broke(h, "pay", FailureRecord("workflow.canceled", "asked to"), "canceled")
    assert kinds(end) == ["CancelTasks", "FinishRun"]
    assert (of(end, CancelTasks)[0].status, h.status("pay")) == ("canceled", "canceled")
    assert finish(end).failure.message == "node bad failed: boom"


@pytest.mark.rule("D-17")
def test_drain_keeps_what_a_child_still_completes(draw: Draw) -> None:
    h = forked(draw, "drain")
    found(h, "pay")
    h.fail("bad")
    assert kinds(ended(h, "pay", 1)) == ["CompleteTask", "FinishRun"]


@pytest.mark.rule("D-17", "W-34")
def test_drain_lets_a_child_of_others_go_at_once(draw: Draw) -> None:
    h = forked(draw, "drain")
    found(h, "pay", created=False)
    step = h.fail("bad")
    assert kinds(step) == ["FailTask", "CancelChild", "CancelTasks", "FinishRun"]
    assert (of(step, CancelChild)[0].awaited, h.status("pay")) == (False, "canceled")


def test_drain_of_a_paused_run_waits_for_no_child_that_may_not_have_been_asked_for(
    draw: Draw,
) -> None:
    h = forked(draw, "drain")
    h.pause()
    assert kinds(h.fail("bad")) == ["FailTask", "CancelChild", "CancelTasks", "FinishRun"]


@pytest.mark.rule("D-17")
@pytest.mark.parametrize("initial", [0, 10])
def test_drain_asks_for_no_child_again(draw: Draw, initial: int) -> None:
    retry = {"attempts": 2, "initial": initial}
    nodes = [fork("f"), task("bad"), task("slow"), child("pay", retry=retry)]
    edges = [edge("f", "bad"), edge("f", "slow"), edge("f", "pay")]
    h = draw(nodes, edges, on_failure="drain")
    h.start()
    found(h, "pay")
    broke(h, "pay", BOOM)  # the next attempt may be due already, and its timer has yet to say so
    step = h.fail("bad")
    assert kinds(step) == ["FailTask", "CancelTasks"]
    assert (of(step, CancelTasks)[0].nodes, h.status("pay")) == (("pay",), "canceled")
    assert finish(h.complete("slow")).status == "failed"


@pytest.mark.rule("D-8", "G-91")
def test_a_retried_run_asks_for_its_child_again_under_the_same_id(draw: Draw) -> None:
    h = draw([task("a"), child("pay"), task("z")], chain("a", "pay", "z"))
    h.start()
    h.complete("a")
    before = call(h, "pay")
    found(h, "pay")
    broke(h, "pay", BOOM)
    again = h.retry()
    (asked,) = of(again, StartChild)
    assert (asked.id, h.status("a")) == ("g/r1/pay", "completed")
    assert call(h, "pay") != before
    found(h, "pay", created=False)
    assert dispatched(ended(h, "pay", 1)) == ["z"]


def test_ids_of_attempts_are_their_own_and_never_too_long() -> None:
    assert id_of_attempt("p", 1) == "p~2"
    assert id_of_attempt("p~2", 1) == "p~2~2"
    assert id_of_attempt("p~2", 2) == "p~3"
    first = "x" * 256
    second = id_of_attempt(first, 1)
    third = id_of_attempt(second, 2)
    assert len({first, second, third}) == 3
    assert max(map(len, (second, third))) <= 256
    assert id_of_attempt("x" * 255 + "y", 1) != second
    assert len(derived_id("w", "r" * 256, "n")) <= 256
    assert (call_id("t", 0), call_id("t", 2)) == ("t", "t~3")


def test_what_a_child_is_given_reads_no_secrets() -> None:
    from perdure import Graph
    from perdure.model.errors import GraphError
    from tests.unit.kernel.drawing import document

    with pytest.raises(GraphError, match="it may not read secrets"):
        Graph.load(document([child("pay", spec={"input": "{{secrets.key}}"})], []))


def test_a_plan_says_whether_it_asks_for_runs() -> None:
    assert plan_of([child("pay")], []).may_ask
    assert not plan_of([task("a")], []).may_ask
