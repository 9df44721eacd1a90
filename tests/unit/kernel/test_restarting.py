"""Retrying a run that has ended: what is reset, what is kept, what is refused."""

from __future__ import annotations

import msgspec
import pytest

from perdure.kernel.actions import CreateTask, DispatchTask, ReopenRun, Transition
from perdure.kernel.events import NodeCompleted, RunRetried
from perdure.kernel.run import Run
from perdure.model.errors import InvalidRequest, RunActive, StoreError
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import (
    chain,
    cond,
    edge,
    fork,
    join,
    otherwise,
    sw,
    task,
    wait,
    wait_for,
)
from tests.unit.kernel.harness import (
    NEW_YEAR,
    Harness,
    created,
    dispatched,
    finish,
    input_of,
    kinds,
    of,
    plan_of,
    shown,
    text,
)


def reset(transition: Transition) -> set[str]:
    """The nodes that the first action resets."""
    first = transition.actions[0]
    assert isinstance(first, ReopenRun)
    return set(first.reset)


def diamond(draw: Draw) -> Harness:
    """a → (b, c) → j → z, where c has failed and the rest that could has completed."""
    h = draw(
        [task("a"), fork("f"), task("b"), task("c", {"x": "{{input.x}}"}), join("j"), task("z")],
        [*chain("a", "f", "b", "j", "z"), *chain("f", "c", "j")],
    )
    h.start({"x": 1})
    h.complete("a", {"n": 1})
    h.complete("b", {"n": 2})
    h.fail("c")
    assert h.run.status == "failed"
    return h


@pytest.mark.rule("G-16", "G-32", "G-91", "G-93")
def test_a_retry_begins_at_the_node_again_and_forgets_what_is_behind_it(draw: Draw) -> None:
    h = diamond(draw)
    old = h.nodes["c"].task
    step = h.retry("c")
    assert kinds(step) == ["ReopenRun", "CreateTask", "DispatchTask"]
    assert reset(step) == {"c", "j", "z"}
    assert dispatched(step) == ["c"]
    state = h.nodes["c"]
    assert (state.status, state.attempt, h.run.status, h.run.failures) == (
        "pending", 0, "running", (),
    )  # fmt: skip
    assert state.task != old
    assert (h.status("a"), h.status("b"), h.status("j")) == ("completed", "completed", "unreached")


@pytest.mark.rule("G-91")
def test_joins_behind_the_retried_node_run_again(draw: Draw) -> None:
    # scenarios 209, 234, 257, 268: what completed is not run again, edges still hold
    h = diamond(draw)
    h.retry("c")
    step = h.complete("c")
    assert (created(step, "completed"), dispatched(step)) == (["j"], ["z"])
    assert finish(h.complete("z")).status == "completed"
    dispatches = [d.node for row in h.recorded() for d in of(row, DispatchTask)]
    assert dispatches == ["a", "b", "c", "c", "z"]


@pytest.mark.rule("G-91", "G-95")
def test_reports_about_tasks_that_were_reset_are_stale(draw: Draw) -> None:
    h = diamond(draw)
    old = h.nodes["c"].task
    h.retry("c")
    assert h.apply(NodeCompleted(old, "c", 0, text({}))).ignored


@pytest.mark.rule("G-91")
def test_the_output_of_a_node_that_runs_again_is_the_new_one(draw: Draw) -> None:
    h = draw(
        [task("a"), task("b", "{{tasks.a.output.n}}"), task("c", "{{tasks.a.output.n}}")],
        chain("a", "b", "c"),
    )
    h.start()
    h.complete("a", {"n": 1})
    h.complete("b")
    h.complete("c")
    h.retry("a")
    assert input_of(h.complete("a", {"n": 2}), "b")["input"] == 2
    assert input_of(h.complete("b"), "c")["input"] == 2


@pytest.mark.rule("G-91")
def test_a_node_ahead_keeps_its_output_for_those_that_run_again(draw: Draw) -> None:
    h = draw([task("a"), task("b"), task("c", "{{tasks.a.output.n}}")], chain("a", "b", "c"))
    h.start()
    h.complete("a", {"n": 7})
    h.fail("b")
    h.retry("b")
    assert input_of(h.complete("b"), "c")["input"] == 7


@pytest.mark.rule("G-91", "G-61")
def test_recorded_choices_stay_as_they_are(draw: Draw) -> None:
    h = draw(
        [sw("s"), task("x"), task("y"), task("z")],
        [cond("s", "x", "input.x"), otherwise("s", "y"), edge("x", "z"), edge("y", "z")],
    )
    h.start({"x": True})
    h.fail("x")
    step = h.retry("x", input={"x": False})
    assert dispatched(step) == ["x"]
    assert (h.status("y"), h.nodes["s"].branches) == ("skipped", ("x",))
    assert dispatched(h.complete("x")) == ["z"]


@pytest.mark.rule("G-91", "G-60")
def test_a_switch_that_runs_again_chooses_again(draw: Draw) -> None:
    h = draw(
        [task("a"), sw("s"), task("x"), task("y")],
        [edge("a", "s"), cond("s", "x", "input.x"), otherwise("s", "y")],
    )
    h.start({"x": True})
    h.complete("a")
    h.complete("x")
    step = h.retry("s", input={"x": False})
    assert (dispatched(step), created(step, "skipped")) == (["y"], ["x"])


@pytest.mark.rule("G-89")
@pytest.mark.parametrize("kind", ["pending", "backoff", "waiting"])
def test_a_run_with_anything_active_refuses_with_count_and_advice(draw: Draw, kind: str) -> None:
    node = wait("b", duration="1h") if kind == "waiting" else task("b", retry={"attempts": 2})
    h = draw([fork("f"), task("a"), node], [edge("f", "a"), edge("f", "b")])
    h.start()
    if kind == "backoff":
        h.fail("b")
    h.fail("a")
    with pytest.raises(RunActive, match=r"1 active task.*cancel it first"):
        h.retry("a")
    h.cancel()
    assert dispatched(h.retry("a")) == ["a"]


@pytest.mark.rule("G-89")
def test_a_run_that_succeeded_may_be_run_again_from_a_node(draw: Draw) -> None:
    h = draw([task("a"), task("b")], chain("a", "b"))
    h.start()
    h.complete("a")
    h.complete("b", 1)
    assert dispatched(h.retry("b")) == ["b"]
    h.complete("b", 2)
    assert (h.run.status, h.output()) == ("completed", {"b": 2})


@pytest.mark.rule("G-90", "D-10")
def test_a_node_that_the_definition_does_not_have_is_refused(draw: Draw) -> None:
    h = diamond(draw)
    with pytest.raises(InvalidRequest, match="node nowhere is not in version"):
        h.retry("nowhere")
    only_a = plan_of([task("a")], [], version="v2")
    with pytest.raises(InvalidRequest, match="node c is not in version v2 of graph g"):
        h.retry("c", plan=only_a)


def test_a_run_that_has_not_started_cannot_be_retried(draw: Draw) -> None:
    with pytest.raises(InvalidRequest, match="not started"):
        draw([task("a")], []).retry("a")


@pytest.mark.rule("G-92", "G-16", "G-105")
def test_input_config_version_and_deadline_may_be_new(draw: Draw) -> None:
    spec = {"x": "{{input.x}}", "c": "{{config.c}}", "v": "{{system.version}}"}
    h = draw([task("a"), task("b", spec)], chain("a", "b"), version="v1")
    h.start({"x": 1}, config={"c": 1}, deadline=NEW_YEAR + 5)
    h.complete("a")
    h.fail("b")
    newer = plan_of([task("a"), task("b", spec)], chain("a", "b"), version="v2")
    step = h.retry("b", plan=newer, input={"x": 2}, config={"c": 2}, deadline=NEW_YEAR + 9)
    assert input_of(step, "b")["input"] == {"x": 2, "c": 2, "v": "v2"}
    assert (h.run.version, h.run.hash, h.run.deadline) == ("v2", newer.hash, NEW_YEAR + 9)


@pytest.mark.rule("G-92")
def test_what_a_retry_does_not_bring_stays(draw: Draw) -> None:
    spec = {"x": "{{input.x}}", "c": "{{config.c}}"}
    h = draw([task("a", spec)], [])
    h.start({"x": 1}, config={"c": 1})
    h.fail("a")
    assert input_of(h.retry("a"), "a")["input"] == {"x": 1, "c": 1}
    h.fail("a")
    assert input_of(h.retry("a", input={"x": 2}), "a")["input"] == {"x": 2, "c": 1}
    h.fail("a")
    assert input_of(h.retry("a", config={"c": 3}), "a")["input"] == {"x": 2, "c": 3}
    assert h.run.deadline is None


@pytest.mark.rule("D-8")
def test_all_failed_nodes_begin_again_in_one_reopen(draw: Draw) -> None:
    # scenario 259
    h = draw(
        [fork("f"), task("c"), task("b"), task("a"), task("z"), join("j")],
        [*chain("f", "a", "z"), *chain("f", "b", "j"), *chain("f", "c", "j")],
    )
    h.start()
    h.fail("a")
    h.complete("b")
    h.fail("c")
    step = h.retry()
    assert reset(step) == {"a", "c", "z", "j"}
    assert dispatched(step) == ["c", "a"]  # in the document's order
    assert len(of(step, ReopenRun)) == 1
    h.complete("a")
    h.complete("z")
    assert finish(h.complete("c")).status == "completed"


@pytest.mark.rule("D-8", "D-39")
def test_what_a_cancel_ended_is_retried_with_the_failed_ones(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), wait("w", duration="1h"), wait_for("s", "go")],
             [edge("f", n) for n in ("a", "w", "s")])  # fmt: skip
    h.start()
    h.cancel()
    step = h.retry()
    assert (dispatched(step), created(step, "waiting")) == (["a"], ["w", "s"])
    assert h.run.active == 3


@pytest.mark.rule("D-8")
def test_a_failed_node_behind_another_failed_one_waits_for_it(draw: Draw) -> None:
    h = draw([task("a"), task("b"), task("c")], chain("a", "b", "c"))
    h.start()
    h.fail("a")
    h.retry("b")  # past the failure
    h.fail("b")
    assert h.run.failed == 2
    step = h.retry()
    assert (reset(step), dispatched(step)) == ({"a", "b", "c"}, ["a"])
    assert dispatched(h.complete("a")) == ["b"]


@pytest.mark.rule("D-8")
def test_without_a_failed_node_all_failed_is_refused(draw: Draw) -> None:
    h = draw([task("a")], [], output="{{tasks.a.output.gone}}")
    h.start()
    h.complete("a")
    assert h.run.status == "failed"
    with pytest.raises(InvalidRequest, match=r"no node of version .* has failed"):
        h.retry()
    assert dispatched(h.retry("a")) == ["a"]


@pytest.mark.rule("D-8", "G-45")
def test_a_failure_that_is_not_retried_still_fails_the_run(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b")], [edge("f", "a"), edge("f", "b")])
    h.start()
    h.fail("a", "first")
    h.fail("b", "second")
    h.retry("a")
    end = finish(h.complete("a"))
    assert (end.status, end.failure.message) == (
        "failed", "node b failed: second",
    )  # fmt: skip


@pytest.mark.rule("D-8")
def test_nodes_that_the_new_version_does_not_have_are_dropped(draw: Draw) -> None:
    h = diamond(draw)
    newer = plan_of(
        [task("a"), fork("f"), task("b"), task("c2"), join("j")],
        [*chain("a", "f", "b", "j"), *chain("f", "c2", "j")],
        version="v2",
    )
    step = h.retry("f", plan=newer)
    assert reset(step) == {"f", "b", "c2", "j", "c"}
    assert "c" not in h.nodes
    assert dispatched(step) == ["b", "c2"]


@pytest.mark.rule("D-8", "G-48")
def test_nodes_that_the_new_version_brings_run_when_all_ahead_of_them_is_resolved(
    draw: Draw,
) -> None:
    h = draw([task("a"), task("b"), task("c")], chain("a", "b", "c"))
    h.start()
    h.complete("a")
    h.fail("b")
    newer = plan_of(
        [task("a"), task("b"), task("c"), task("audit"), task("later")],
        [*chain("a", "b", "c"), edge("a", "audit"), edge("c", "later")],
        version="v2",
    )
    step = h.retry(plan=newer)
    assert dispatched(step) == ["b", "audit"]
    assert h.status("later") == "unreached"


@pytest.mark.rule("G-56", "G-93")
def test_a_node_that_was_never_reached_may_be_begun_at(draw: Draw) -> None:
    h = diamond(draw)
    assert dispatched(h.retry("z")) == ["z"]
    assert finish(h.complete("z")).failure.message == "node c failed: boom"


@pytest.mark.rule("G-98", "D-5", "D-10")
def test_a_routing_error_while_beginning_again_refuses_the_retry(draw: Draw) -> None:
    h = draw([sw("s"), task("x"), task("y")],
             [cond("s", "x", "input.there.it.is"), edge("s", "y")])  # fmt: skip
    h.start({"there": {"it": {"is": True}}})
    h.complete("x", {"n": 1})
    h.complete("y")
    with pytest.raises(InvalidRequest, match="the condition of edge s -> x"):
        h.retry("s", input={})
    assert (h.run.status, h.output()) == ("completed", {"x": {"n": 1}, "y": {}})
    assert dispatched(h.retry("s")) == ["x", "y"]


@pytest.mark.rule("D-10", "G-71")
def test_a_retry_that_a_store_fails_leaves_the_run_as_it_was() -> None:
    nodes = [task("a"), task("b"), fork("f"), task("c", "{{tasks.a.output}}"), task("d")]
    plan = plan_of(nodes, [*chain("a", "b", "f", "c", "d")])
    h = Harness(plan, live=True)
    h.start()
    h.complete("a", 5)
    h.complete("b")
    h.complete("c")
    h.fail("d")
    h.reload()
    before = shown(h.run)
    h.load_error = StoreError("down")
    with pytest.raises(StoreError):
        h.retry("f")
    assert (shown(h.run), list(h.nodes)) == (before, ["a", "b", "f", "c", "d"])
    h.load_error = None
    assert input_of(h.retry("f"), "c")["input"] == 5
    assert list(h.nodes) == ["a", "b", "f", "c"]


@pytest.mark.rule("D-10", "G-91")
def test_a_retry_given_up_forgets_no_output_that_is_in_memory() -> None:
    plan = plan_of(
        [sw("s"), task("b"), task("c", "{{tasks.b.output}}"), task("d", "{{tasks.b.output}}")],
        [cond("s", "b", "input.ok"), *chain("b", "c", "d")],
    )
    h = Harness(plan, live=True)
    h.start({"ok": True})
    for node in ("b", "c", "d"):
        h.complete(node, 5)
    with pytest.raises(InvalidRequest, match="condition"):
        h.retry("s", input={})
    assert input_of(h.retry("c"), "c")["input"] == 5
    assert h.loads == []


@pytest.mark.rule("G-91", "D-14")
def test_a_node_that_is_skipped_this_time_has_no_output_left_from_before(draw: Draw) -> None:
    h = draw(
        [sw("s"), task("x"), task("y"), task("z", "{{has(tasks.x.output)}}")],
        [cond("s", "x", "input.x"), otherwise("s", "y"), edge("x", "z"), edge("y", "z")],
    )
    h.start({"x": True})
    assert input_of(h.complete("x", 1), "z")["input"] is True
    h.fail("z")
    h.retry("s", input={"x": False})
    assert input_of(h.complete("y"), "z")["input"] is False


@pytest.mark.rule("G-91", "G-81")
def test_kept_signals_stay_for_the_nodes_that_run_again(draw: Draw) -> None:
    h = draw([task("a"), wait_for("w", "go"), task("z")], chain("a", "w", "z"))
    h.start()
    h.signal("go", 1)
    h.signal("go", 2)
    h.complete("a")
    h.fail("z")
    assert [s.id for s in h.run.signals] == ["m2"]
    step = h.retry("w")
    assert (created(step, "completed"), h.outputs["w"], h.run.signals) == (["w"], text(2), ())


def test_a_retry_may_end_the_run_at_once(draw: Draw) -> None:
    h = draw([task("a"), fork("f"), join("j")], chain("a", "f", "j"))
    h.start()
    h.complete("a")
    step = h.retry("f")
    assert kinds(step) == ["ReopenRun", "CreateTask", "CreateTask", "FinishRun"]
    assert h.run.status == "completed"


@pytest.mark.rule("G-93", "G-103")
def test_each_epoch_gives_a_node_one_task_of_its_own(draw: Draw) -> None:
    h = draw([task("a")], [])
    h.start()
    for _ in range(3):
        h.fail("a")
        h.retry()
    tasks = [t.task for row in h.recorded() for t in of(row, CreateTask)]
    assert tasks == sorted(set(tasks))
    assert len(tasks) == 4


def test_a_paused_run_stays_paused_when_it_is_retried(draw: Draw) -> None:
    h = draw([task("a")], [])
    h.start()
    h.pause()
    h.cancel()
    h.retry()
    assert h.run.paused
    assert h.unpause().ignored is None


def test_a_retry_counts_completions_on_from_where_they_were(draw: Draw) -> None:
    h = draw([task("a"), task("b")], chain("a", "b"))
    h.start()
    h.complete("a")
    h.complete("b")
    h.retry("b")
    h.complete("b")
    assert (h.nodes["a"].completed_no, h.nodes["b"].completed_no) == (1, 3)


def test_a_retry_of_nothing_at_all_is_refused_like_any_bad_request() -> None:
    h = Harness(plan_of([task("a")], []))
    with pytest.raises(InvalidRequest):
        h.apply(RunRetried())
    assert msgspec.json.encode(h.run) == msgspec.json.encode(Run())
