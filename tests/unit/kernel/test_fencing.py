"""Reports count once, and only for the attempt they are about."""

from __future__ import annotations

import pytest

from perdure.kernel.actions import CompleteTask, CreateTask, FinishRun, OpenRun, Transition
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.kernel.fold import FOLDS, fold
from perdure.kernel.machine import GraphMachine
from perdure.kernel.moves import NEW, RUN_MOVES, TASK_MOVES
from perdure.kernel.run import NodeState, Run
from perdure.model.failure import FailureRecord
from tests.unit.kernel.conftest import Draw
from tests.unit.kernel.drawing import chain, edge, fork, sw, task
from tests.unit.kernel.harness import Harness, dispatched, kinds, plan_of, shown, text

BOOM = FailureRecord("Error", "boom")
RETRY = {"retry": {"attempts": 3}}


def line(draw: Draw) -> Harness:
    h = draw([task("a", **RETRY), task("b")], chain("a", "b"))
    h.start()
    return h


@pytest.mark.rule("G-12", "G-23", "G-35", "G-36")
def test_stale_and_duplicate_reports_are_ignored(draw: Draw) -> None:
    h = line(draw)
    task_id = h.nodes["a"].task
    other_attempt = h.apply(NodeCompleted(task_id, "a", 3, text({})))
    assert (other_attempt.actions, "attempt 4" in str(other_attempt.ignored)) == ([], True)
    other_task = h.apply(NodeCompleted("other", "a", 0, text({})))
    assert (other_task.actions, "another task" in str(other_task.ignored)) == ([], True)
    h.complete("a")
    again = h.apply(NodeCompleted(task_id, "a", 0, text({})))
    assert (again.actions, "already completed" in str(again.ignored)) == ([], True)


@pytest.mark.rule("G-13", "G-35", "G-36")
def test_failures_are_fenced_like_completions(draw: Draw) -> None:
    h = line(draw)
    task_id = h.nodes["a"].task
    for event in (
        NodeFailed(task_id, "a", 1, BOOM),
        NodeFailed("other", "a", 0, BOOM),
        NodeFailed("t009", "b", 0, BOOM),
        NodeFailed("t009", "nowhere", 0, BOOM),
    ):
        assert h.apply(event).ignored
    h.complete("a")
    assert h.apply(NodeFailed(task_id, "a", 0, BOOM)).ignored
    assert h.status("a") == "completed"


@pytest.mark.rule("G-40", "G-36")
def test_a_retry_makes_reports_of_the_attempt_before_stale(draw: Draw) -> None:
    h = line(draw)
    task_id = h.nodes["a"].task
    h.fail("a")
    late = h.apply(NodeCompleted(task_id, "a", 0, text({})))
    assert (late.ignored is not None, h.status("a")) == (True, "pending")
    assert h.apply(NodeFailed(task_id, "a", 0, BOOM)).ignored
    assert dispatched(h.apply(NodeCompleted(task_id, "a", 1, text({})))) == ["b"]


@pytest.mark.rule("G-35")
def test_a_report_says_attempts_from_one_to_people(draw: Draw) -> None:
    h = line(draw)
    task_id = h.nodes["a"].task
    h.fail("a")
    ignored = h.apply(NodeCompleted(task_id, "a", 0, text({}))).ignored
    assert ignored == "node a is at attempt 2: the report of attempt 1 is stale"


@pytest.mark.rule("G-35")
def test_control_and_skipped_nodes_take_no_reports(draw: Draw) -> None:
    h = draw([fork("f"), sw("s"), task("x"), task("b")], [
        *[edge("f", "s"), edge("f", "b")],
        {"from": "s", "to": "x", "condition": "{{false}}"},
    ])  # fmt: skip
    h.start()
    for node in ("f", "s", "x"):
        assert h.apply(NodeCompleted(h.nodes[node].task, node, 0, text({}))).ignored


@pytest.mark.rule("G-37")
def test_an_ignored_report_does_not_even_ask_whether_the_run_is_over() -> None:
    h = Harness(plan_of([task("a")], []), live=True)
    h.start()
    # A snapshot that is over but not yet finished: only the finish check would see it.
    h.run.nodes["a"] = NodeState("t001", "completed")
    h.run.active = 0
    decision = h.machine.apply(NodeCompleted("t001", "a", 0, text({})))
    with pytest.raises(StopIteration) as stop:
        next(decision)
    assert (stop.value.value.actions, h.run.status) == ([], "running")


@pytest.mark.rule("G-38", "G-42")
def test_on_a_finished_run_a_matching_report_is_recorded_and_schedules_nothing() -> None:
    # Runs finish only when nothing is active: a journal that says otherwise is met calmly.
    plan = plan_of([task("a", **RETRY), task("b"), task("c")], [*chain("a", "b"), *chain("a", "c")])
    rows = [
        OpenRun("g", "r1", "1", "0", ""),
        CreateTask("t001", "a", "pending", input=text({})),
        FinishRun("failed", failure=BOOM),
    ]
    h = Harness(plan, live=True)
    h.machine = GraphMachine(plan, fold([Transition(h.now, list(rows))]), h.deps)
    (completed,) = next_transition(h, NodeCompleted("t001", "a", 0, text({"n": 1}))).actions
    assert type(completed) is CompleteTask
    h.machine = GraphMachine(plan, fold([Transition(h.now, list(rows))]), h.deps)
    assert kinds(next_transition(h, NodeFailed("t001", "a", 0, BOOM))) == ["FailTask"]


def next_transition(h: Harness, event: NodeCompleted | NodeFailed) -> Transition:
    with pytest.raises(StopIteration) as stop:
        next(h.machine.apply(event))
    transition: Transition = stop.value.value
    return transition


@pytest.mark.rule("G-35", "G-22")
@pytest.mark.parametrize("status", [NEW, *sorted(set(TASK_MOVES) - {NEW})])
@pytest.mark.parametrize("run_status", sorted(set(RUN_MOVES) - {NEW}))
def test_a_report_counts_in_exactly_one_status(status: str, run_status: str) -> None:
    """Every status of a task, in every status of a run, meets both kinds of report."""
    plan = plan_of([task("a", **RETRY), task("b")], chain("a", "b"))
    for event in (NodeCompleted("t001", "a", 0, text({})), NodeFailed("t001", "a", 0, BOOM)):
        h = Harness(plan, live=True)
        run = Run("g", "r1", status=run_status, active=int(status == "pending"))
        if status != NEW:
            run.nodes["a"] = NodeState("t001", status)
        h.machine = GraphMachine(plan, run, h.deps)
        before = shown(run)
        transition = next_transition(h, event)
        if status == "pending":
            assert transition.ignored is None
            assert transition.actions
        else:
            assert (transition.ignored is not None, transition.actions) == (True, [])
            assert shown(run) == before


@pytest.mark.rule("G-35")
def test_every_action_knows_its_fold() -> None:
    from perdure.kernel import actions

    known = {kind for kind in vars(actions).values() if isinstance(kind, type)
             and issubclass(kind, actions.Action) and kind is not actions.Action}  # fmt: skip
    assert set(FOLDS) == known
