"""How a run ends: only when nothing is active, and never as a success that is none."""

from __future__ import annotations

import pytest

from perdure.kernel.events import DeadlineReached, NodeCompleted
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, cond, edge, fork, join, otherwise, sw, task
from tests.unit.kernel.harness import NEW_YEAR, Harness, finish, kinds, plan_of, text


@pytest.mark.rule("G-45", "G-34", "D-1")
def test_a_run_without_failures_ends_completed(draw: Draw) -> None:
    h = draw([task("a")], [])
    h.start()
    end = finish(h.complete("a", {"n": 1}))
    assert (end.status, end.failure, h.output()) == ("completed", None, {"a": {"n": 1}})


@pytest.mark.rule("G-45", "G-34", "D-1")
def test_a_failed_run_says_how_many_tasks_failed_and_the_first_ones_reason(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b"), task("c")],
             [edge("f", "a"), edge("f", "b"), edge("f", "c")])  # fmt: skip
    h.start()
    h.fail("b", FailureRecord("Declined", "no money", details=[1]))
    h.complete("a")
    end = finish(h.fail("c", "other"))
    assert (end.status, end.output) == ("failed", None)
    assert end.failure.kind == "Declined"
    assert end.failure.message == "node b failed: no money (and 1 more failed)"
    assert end.failure.details == {"node": "b", "attempt": 1, "failed": 2, "details": [1]}


@pytest.mark.rule("G-46")
def test_a_run_is_not_failed_while_another_branch_runs_and_starts_more(draw: Draw) -> None:
    h = draw(
        [fork("f"), task("a"), task("b"), task("b2")],
        [*chain("f", "a"), *chain("f", "b", "b2")],
    )
    h.start()
    assert kinds(h.fail("a")) == ["FailTask"]
    assert kinds(h.complete("b")) == ["CompleteTask", "CreateTask", "DispatchTask"]
    assert finish(h.complete("b2")).status == "failed"


@pytest.mark.rule("G-22", "G-45")
def test_skipped_and_completed_nodes_are_neither_active_nor_failed(draw: Draw) -> None:
    h = draw([sw("s"), task("a"), task("b")], [cond("s", "a", "false"), otherwise("s", "b")])
    h.start()
    assert (h.run.active, h.run.failed, h.run.completed) == (1, 0, 1)
    h.complete("b")
    assert (h.run.active, h.run.failed, h.run.completed) == (0, 0, 2)


@pytest.mark.rule("G-45")
def test_the_output_of_a_run_is_that_of_its_completed_leaves(draw: Draw) -> None:
    h = draw(
        [sw("s"), task("a"), task("b"), task("c")],
        [cond("s", "a", "false"), otherwise("s", "b"), edge("s", "c")],
    )
    h.start()
    h.complete("b", "x")
    h.complete("c", None)
    assert h.output() == {"b": "x", "c": {}}


@pytest.mark.rule("G-45")
def test_the_documents_output_template_makes_the_runs_output(draw: Draw) -> None:
    h = draw(
        [task("a"), task("b")],
        chain("a", "b"),
        output={"n": "{{tasks.a.output.n}}", "who": "{{input.who}}", "v": 1},
    )
    h.start({"who": "ann"})
    h.complete("a", {"n": 5})
    h.complete("b")
    assert h.output() == {"n": 5, "who": "ann", "v": 1}


@pytest.mark.rule("G-45")
def test_an_output_that_cannot_be_made_fails_the_run_with_the_reason(draw: Draw) -> None:
    h = draw([task("a")], [], output={"n": "{{tasks.a.output.gone}}"})
    h.start()
    end = finish(h.complete("a", {}))
    assert (end.status, end.failure.kind) == ("failed", "output")
    assert "gone" in end.failure.message


@pytest.mark.rule("D-6", "G-56")
def test_a_join_that_can_never_be_reached_blocks_the_run_visibly(draw: Draw) -> None:
    h = draw(
        [fork("f"), task("a"), task("b"), join("j")],
        [*chain("f", "a", "j"), *chain("f", "b", "j")],
    )
    h.start(start_node="a")
    end = finish(h.complete("a"))
    assert (end.status, end.failure.kind) == ("failed", "workflow.blocked")
    assert end.failure.message == "blocked: j waits for b"


@pytest.mark.rule("D-6")
def test_a_failure_is_told_rather_than_what_it_blocks(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b"), join("j")],
             [*chain("f", "a", "j"), *chain("f", "b", "j")])  # fmt: skip
    h.start()
    h.complete("a")
    assert finish(h.fail("b")).failure.message.startswith("node b failed")


@pytest.mark.rule("D-6")
def test_an_unreached_node_behind_nothing_active_does_not_block(draw: Draw) -> None:
    # b is never reached from a's start, but nothing leads to it: the run is simply over
    h = draw([task("a"), task("b"), task("z")], [edge("b", "z")], entry="a")
    h.start()
    assert finish(h.complete("a")).status == "completed"


@pytest.mark.rule("G-96", "D-5")
def test_a_report_for_a_node_that_left_the_definition_fails_with_its_name() -> None:
    h = Harness(plan_of([task("a"), task("b")], chain("a", "b")))
    h.start()
    h.plan = plan_of([task("b")], [], version="v2")
    step = h.complete("a", {"n": 1})
    assert kinds(step) == ["FailTask", "FinishRun"]
    assert "node a is not in version v2 of the definition" in finish(step).failure.message


@pytest.mark.rule("D-1")
def test_at_its_deadline_a_run_fails_as_timed_out_and_late_reports_are_ignored(draw: Draw) -> None:
    h = draw([fork("f"), task("a"), task("b", retry={"attempts": 9})],
             [edge("f", "a"), edge("f", "b")])  # fmt: skip
    h.start(deadline=NEW_YEAR + 60 * SECOND)
    h.fail("b")
    h.advance(59)
    assert h.apply(DeadlineReached()).ignored
    h.advance(1)
    step = h.apply(DeadlineReached())
    assert kinds(step) == ["FailTask", "FailTask", "FinishRun"]
    end = finish(step)
    assert (end.status, end.failure.kind) == ("failed", "workflow.timeout")
    assert (h.status("a"), h.status("b"), h.run.active) == ("failed", "failed", 0)
    assert h.apply(DeadlineReached()).ignored
    assert h.apply(NodeCompleted("t002", "a", 0, text({}))).ignored


@pytest.mark.rule("G-45")
def test_a_run_without_a_deadline_has_none_to_reach(draw: Draw) -> None:
    h = draw([task("a")], [])
    h.start()
    h.advance(1e9)
    assert h.apply(DeadlineReached()).ignored
