"""on_failure: what a branch that failed for good does to the others."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import CancelTasks, FailTask, RetryTask
from perdure.kernel.events import NodeCompleted, TimerFired
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import Member, chain, edge, fork, join, task, wait, wait_for
from tests.unit.kernel.harness import (
    NEW_YEAR,
    Harness,
    created,
    dispatched,
    finish,
    kinds,
    of,
    plan_of,
    text,
)


def branches(draw: Draw, on_failure: str, *more: Member) -> Harness:
    """A fork into `bad`, a running `run` → `next`, `back` in backoff, and two waits."""
    nodes = [
        *[fork("f"), task("bad"), task("run", retry={"attempts": 3}), task("next")],
        *[task("back", retry={"attempts": 5, "initial": 10}), wait("w", duration="1h")],
        *[wait_for("s", "go", timeout="1h"), *more],
    ]
    edges = [*(edge("f", n) for n in ("bad", "run", "back", "w", "s")), edge("run", "next")]
    edges += [edge("f", node["id"]) for node in more]
    h = draw(nodes, edges, on_failure=on_failure)
    h.start({})
    h.fail("back")
    return h


@pytest.mark.rule("D-17", "G-46")
def test_continue_lets_the_other_branches_go_on_and_start_more(draw: Draw) -> None:
    h = branches(draw, "continue")
    assert kinds(h.fail("bad")) == ["FailTask"]
    assert kinds(h.fail("run")) == ["RetryTask"]
    assert dispatched(h.complete("run")) == ["next"]
    assert (h.status("back"), h.status("w"), h.status("s")) == ("pending", "waiting", "waiting")


@pytest.mark.rule("D-17", "G-33")
def test_cancel_ends_all_that_is_active_and_names_the_node_that_failed(draw: Draw) -> None:
    # scenario 238
    h = branches(draw, "cancel")
    step = h.fail("bad", "no stock")
    assert kinds(step) == ["FailTask", "CancelTasks", "FinishRun"]
    (order,) = of(step, CancelTasks)
    assert (order.nodes, order.status) == (("run", "back", "w", "s"), "failed")
    assert (order.failure.kind, order.failure.message) == (
        "workflow.canceled", "canceled because node bad failed: no stock",
    )  # fmt: skip
    end = finish(step)
    assert (end.status, end.failure.kind) == ("failed", "Error")
    assert end.failure.message == "node bad failed: no stock (and 4 more failed)"
    assert h.apply(NodeCompleted("t003", "run", 0, text({}))).ignored


@pytest.mark.rule("D-17")
def test_cancel_waits_for_a_failure_for_good(draw: Draw) -> None:
    h = branches(draw, "cancel")
    assert kinds(h.fail("run")) == ["RetryTask"]


@pytest.mark.rule("D-17")
def test_drain_ends_waits_and_backoffs_and_lets_running_attempts_finish(draw: Draw) -> None:
    h = branches(draw, "drain")
    step = h.fail("bad", "no stock")
    assert kinds(step) == ["FailTask", "CancelTasks"]
    (order,) = of(step, CancelTasks)
    assert (order.nodes, order.status) == (("back", "w", "s"), "canceled")
    assert "node bad failed: no stock" in order.failure.message
    assert {h.status(node) for node in order.nodes} == {"canceled"}
    assert (h.status("run"), h.run.active) == ("pending", 1)
    end = finish(h.complete("run", {"n": 1}))
    assert (h.status("run"), h.status("next")) == ("completed", "unreached")
    assert (end.status, end.failure.message) == (
        "failed", "node bad failed: no stock",
    )  # fmt: skip


@pytest.mark.rule("D-17")
def test_drain_makes_no_further_attempt(draw: Draw) -> None:
    h = branches(draw, "drain")
    h.fail("bad", "first")
    step = h.fail("run", "second")
    assert (of(step, RetryTask), len(of(step, FailTask))) == ([], 1)
    assert finish(step).failure.message == "node bad failed: first (and 1 more failed)"


@pytest.mark.rule("D-17")
def test_drain_lets_an_attempt_whose_time_has_come_finish(draw: Draw) -> None:
    h = branches(draw, "drain")
    h.advance(60)
    (order,) = of(h.fail("bad"), CancelTasks)
    assert order.nodes == ("w", "s")
    assert h.status("back") == "pending"


@pytest.mark.rule("D-17")
def test_drain_lets_an_attempt_finish_that_was_repeated_at_once(draw: Draw) -> None:
    h = draw([fork("f"), task("bad"), task("b", retry={"attempts": 2, "initial": 0})],
             [edge("f", "bad"), edge("f", "b")], on_failure="drain")  # fmt: skip
    h.start()
    h.fail("b")
    assert kinds(h.fail("bad")) == ["FailTask"]
    h.complete("b")
    assert h.status("b") == "completed"


@pytest.mark.rule("D-17", "G-86", "G-95")
def test_what_was_drained_answers_to_nothing_any_more(draw: Draw) -> None:
    h = branches(draw, "drain")
    tasks = {node: h.nodes[node].task for node in ("w", "s", "back")}
    h.fail("bad")
    h.advance(3600)
    assert h.apply(TimerFired(tasks["w"], "w", NEW_YEAR + 3_600_000_000)).ignored
    assert not h.signal("go").signal_delivered
    assert h.apply(NodeCompleted(tasks["back"], "back", 1, text({}))).ignored


@pytest.mark.rule("D-17")
@pytest.mark.parametrize("on_failure", ["drain", "cancel"])
def test_nothing_begins_after_a_failure_within_the_same_event(draw: Draw, on_failure: str) -> None:
    h = draw(
        [task("a"), fork("f"), task("x"), task("bad", "{{input.gone}}"), task("y"),
         wait("w", duration=0), task("z")],
        [edge("a", "f"), *(edge("f", n) for n in ("x", "bad", "y", "w")), edge("w", "z")],
        on_failure=on_failure,
    )  # fmt: skip
    h.start({})
    step = h.complete("a")
    assert (dispatched(step), created(step, "failed")) == (["x"], ["bad"])
    assert [h.status(n) for n in ("y", "w", "z")] == ["unreached"] * 3
    if on_failure == "drain":
        step = h.complete("x")
    assert "bad" in finish(step).failure.message


@pytest.mark.rule("D-17", "D-8")
def test_of_several_nodes_retried_none_begins_after_one_that_fails_at_once(draw: Draw) -> None:
    h = draw([fork("f"), task("a", "{{input.x}}"), task("b")], [edge("f", "a"), edge("f", "b")],
             on_failure="drain")  # fmt: skip
    h.start({"x": 1})
    h.fail("a")
    h.fail("b")
    step = h.retry(input={})
    assert (created(step, "failed"), dispatched(step)) == (["a"], [])
    assert "node a failed: the input of node a" in finish(step).failure.message


@pytest.mark.rule("D-17", "G-87")
@pytest.mark.parametrize("on_failure", ["drain", "cancel"])
def test_a_timed_out_wait_is_a_failure_like_others(draw: Draw, on_failure: str) -> None:
    h = draw([fork("f"), wait_for("s", "go", timeout="1m"), wait("w", duration="1h")],
             [edge("f", "s"), edge("f", "w")], on_failure=on_failure)  # fmt: skip
    h.start()
    step = h.fire("s")
    assert kinds(step) == ["ResolveWait", "CancelTasks", "FinishRun"]
    assert finish(step).failure.kind == "workflow.timeout"


@pytest.mark.rule("D-17", "D-8")
@pytest.mark.parametrize("on_failure", ["drain", "cancel"])
def test_all_that_was_given_up_runs_when_the_failed_nodes_are_retried(
    draw: Draw, on_failure: str
) -> None:
    h = branches(draw, on_failure, wait("w2", duration="1h"))
    h.fail("bad")
    if on_failure == "drain":
        h.complete("run")
    assert h.run.status == "failed"
    step = h.retry()
    again = ["bad", "next", "back"] if on_failure == "drain" else ["bad", "run", "back"]
    assert sorted(dispatched(step)) == sorted(again)
    assert created(step, "waiting") == ["w", "s", "w2"]
    for node in again:
        h.complete(node)
    if on_failure == "cancel":
        h.complete("next")
    h.signal("go")
    h.fire("w")
    assert finish(h.fire("w2")).status == "completed"


@pytest.mark.rule("D-17", "D-8")
@pytest.mark.parametrize("on_failure", ["drain", "cancel"])
def test_old_failures_do_not_stop_a_run_that_was_retried_elsewhere(
    draw: Draw, on_failure: str
) -> None:
    h = draw([fork("f"), task("a"), task("b", retry={"attempts": 2}), task("c")],
             [edge("f", "a"), *chain("f", "b", "c")], on_failure=on_failure)  # fmt: skip
    h.start()
    h.fail("a", "old")
    if on_failure == "drain":
        h.fail("b")
    assert h.run.status == "failed"
    assert dispatched(h.retry("b")) == ["b"]
    assert kinds(h.fail("b")) == ["RetryTask"]
    assert dispatched(h.complete("b")) == ["c"]
    assert finish(h.complete("c")).failure.message == "node a failed: old"


@pytest.mark.rule("D-17", "D-8")
def test_the_failure_named_to_the_rest_is_of_this_time(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b"), task("c")],
             [edge("f", n) for n in ("a", "b", "c")], on_failure="drain")  # fmt: skip
    h.start()
    h.fail("a", "old")
    h.complete("b")
    h.complete("c")
    newer = plan_of(
        [fork("f"), task("a"), task("b"), task("c"), wait("w", duration="1h")],
        [edge("f", n) for n in ("a", "b", "c", "w")],
        on_failure="drain", version="v2",
    )  # fmt: skip
    h.retry("b", plan=newer)
    (order,) = of(h.fail("b", "new"), CancelTasks)
    assert (order.nodes, order.failure.message) == (
        ("w",), "canceled because node b failed: new",
    )  # fmt: skip


@pytest.mark.rule("D-6", "D-17")
def test_a_node_given_up_and_never_retried_is_no_success(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), wait("w", duration="1h"), join("j")],
             [*chain("f", "a", "j"), edge("f", "w")], on_failure="drain")  # fmt: skip
    h.start()
    h.fail("a")
    assert h.status("w") == "canceled"
    h.retry("a")
    end = finish(h.complete("a"))
    assert (end.status, end.failure.kind) == ("failed", "workflow.blocked")
    assert end.failure.message == "blocked: w was canceled and not retried"
    assert created(h.retry(), "waiting") == ["w"]
    assert finish(h.fire("w")).status == "completed"
