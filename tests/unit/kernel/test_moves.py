"""Every legal move, and every other one refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure.kernel.actions import (
    Action,
    BeginCompensation,
    BufferSignal,
    CancelTasks,
    Claimed,
    CompensateTask,
    CompleteTask,
    ConsumeSignal,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    Ignored,
    OpenRun,
    Refused,
    ReopenRun,
    RequestStop,
    ResolveWait,
    RetryTask,
    SetPaused,
    Transition,
)
from perdure.kernel.fold import FOLDS, fold_transition
from perdure.kernel.moves import (
    NEW,
    PHASE_MOVES,
    RUN_MOVES,
    TASK_MOVES,
    IllegalMove,
    check_phase,
    check_run,
    check_task,
    drawn,
)
from perdure.kernel.run import COMPENSATING, FORWARD, KeptSignal, NodeState, Run
from perdure.model.failure import FailureRecord
from perdure.model.status import ACTIVE, RESOLVED, TERMINAL
from tests.unit.kernel.harness import text

BOOM = FailureRecord("Error", "boom")
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "moves.md"

#: Each action about a task, the status it leads to, and the statuses it may meet.
TASK_ACTIONS: list[tuple[Action, str, set[str]]] = [
    *[(CreateTask("t1", "a", s), s, {NEW})
      for s in ("pending", "waiting", "completed", "skipped")],
    (CreateTask("t1", "a", "failed", failure=BOOM), "failed", {NEW}),
    (CompleteTask("t1", "a"), "completed", {"pending"}),
    (FailTask("t1", "a", 0, BOOM), "failed", {"pending"}),
    (RetryTask("t1", "a", 0, BOOM, 5), "pending", {"pending"}),
    (ResolveWait("t1", "a", "completed"), "completed", {"waiting"}),
    (ResolveWait("t1", "a", "failed", failure=BOOM), "failed", {"waiting"}),
    (ResolveWait("t1", "a", "canceled", failure=BOOM), "canceled", {"waiting"}),
    (ResolveWait("t1", "a", "skipped"), "skipped", set()),
    (CancelTasks(BOOM, ("a",)), "failed", {"pending", "waiting"}),
    (CancelTasks(BOOM, ("a",), "canceled"), "canceled", {"pending", "waiting"}),
    (CancelTasks(BOOM, ("a",), "completed"), "completed", set()),
    (CompensateTask("t1", "a"), "compensated", {"completed"}),
]  # fmt: skip


def test_the_tables_are_exactly_these() -> None:
    assert {
        "new": {"pending", "waiting", "completed", "skipped", "failed"},
        "pending": {"pending", "completed", "failed", "canceled"},
        "waiting": {"completed", "failed", "canceled"},
        "completed": {"compensated"},
        "skipped": set(),
        "failed": {"compensated"},
        "canceled": {"compensated"},
        "compensated": set(),
    } == TASK_MOVES
    assert {
        "new": {"running"},
        "running": {"completed", "failed", "canceled"},
        "completed": {"running"},
        "failed": {"running"},
        "canceled": {"running"},
    } == RUN_MOVES
    assert {"forward": {"compensating"}, "compensating": {"forward"}} == PHASE_MOVES


def test_nothing_leaves_a_resolved_status_but_to_be_undone_and_a_retry_a_terminal_one() -> None:
    assert all(TASK_MOVES[status] <= {"compensated"} for status in RESOLVED)
    assert all(RUN_MOVES[status] == {"running"} for status in TERMINAL)
    assert set(TASK_MOVES) - RESOLVED - {NEW} == ACTIVE


def test_every_status_a_move_leads_to_has_moves_of_its_own() -> None:
    for moves in (TASK_MOVES, RUN_MOVES):
        assert {after for afters in moves.values() for after in afters} <= set(moves)


@pytest.mark.parametrize(("before", "after"), list(product(TASK_MOVES, TASK_MOVES)))
def test_a_task_may_move_only_as_the_table_says(before: str, after: str) -> None:
    if after in TASK_MOVES[before]:
        check_task("a", before, after)
    else:
        with pytest.raises(IllegalMove, match=f"node a: {before} cannot become {after}"):
            check_task("a", before, after)


@pytest.mark.parametrize(("before", "after"), list(product(RUN_MOVES, RUN_MOVES)))
def test_a_run_may_move_only_as_the_table_says(before: str, after: str) -> None:
    if after in RUN_MOVES[before]:
        check_run(before, after)
    else:
        with pytest.raises(IllegalMove, match=f"run: {before} cannot become {after}"):
            check_run(before, after)


@pytest.mark.parametrize(("before", "after"), list(product(PHASE_MOVES, PHASE_MOVES)))
def test_a_run_changes_its_phase_only_as_the_table_says(before: str, after: str) -> None:
    if after in PHASE_MOVES[before]:
        check_phase(before, after)
    else:
        with pytest.raises(IllegalMove, match=f"run: {before} cannot become {after}"):
            check_phase(before, after)


def a_run(status: str) -> Run:
    """A run with one node in this status."""
    run = Run("g", "r1", status="running", active=int(status in ACTIVE))
    if status != NEW:
        run.nodes["a"] = NodeState("t1", status)
    return run


@pytest.mark.rule("G-6", "G-24", "G-26", "G-27", "G-28", "G-29", "G-33")
@pytest.mark.parametrize("before", list(TASK_MOVES))
@pytest.mark.parametrize(("action", "after", "meets"), TASK_ACTIONS, ids=lambda x: type(x).__name__)
def test_folding_moves_a_task_legally_or_refuses(
    before: str, action: Action, after: str, meets: set[str]
) -> None:
    run = a_run(before)
    if before in meets:
        assert after in TASK_MOVES[before]
        FOLDS[type(action)](run, action)
        assert run.nodes["a"].status == after
        assert run.active == int(after in ACTIVE)
        assert run.failures == ((("a", BOOM),) if after == "failed" else ())
        assert (run.completed, run.nodes["a"].completed_no) == ((after == "completed"),) * 2
    else:
        with pytest.raises(IllegalMove):
            FOLDS[type(action)](run, action)


@pytest.mark.rule("S-17", "SX-9")
def test_what_nobody_knows_is_undone_as_if_it_had_completed() -> None:
    run = a_run("pending")
    run.nodes["b"] = NodeState("t2", "canceled")
    FOLDS[CancelTasks](run, CancelTasks(BOOM, ("a",), "canceled", True))
    assert (run.unknown, run.completed, run.nodes["a"].completed_no) == (("a",), 1, 1)
    FOLDS[CompensateTask](run, CompensateTask("t1", "a"))
    assert run.nodes["a"] == NodeState("t1", "compensated", completed_no=1, unknown=True)
    run.nodes["c"] = NodeState("t3", "pending")
    FOLDS[FailTask](run, FailTask("t3", "c", 0, BOOM, unknown=True))
    assert (run.unknown, run.completed, run.failures) == (("a", "c"), 2, (("c", BOOM),))
    FOLDS[CompensateTask](run, CompensateTask("t3", "c"))
    assert run.nodes["c"] == NodeState("t3", "compensated", completed_no=2, unknown=True)
    run.nodes["d"] = NodeState("t4", "failed")
    for node in ("a", "b", "d"):
        with pytest.raises(IllegalMove):
            FOLDS[CompensateTask](run, CompensateTask("t1", node))


@pytest.mark.rule("D-18")
def test_undoing_begins_once_and_ends_with_a_retry() -> None:
    run = a_run("completed")
    run.nodes["a"] = NodeState("t1", "completed", completed_no=1)
    FOLDS[RequestStop](run, RequestStop(FailureRecord("workflow.canceled", "first"), "cancel"))
    FOLDS[RequestStop](run, RequestStop(BOOM, "timeout"))
    assert run.stopping is not None
    assert (run.stopping.message, run.reason, run.phase) == ("first", "cancel", FORWARD)
    FOLDS[BeginCompensation](run, BeginCompensation("failure", BOOM, ("x",)))
    assert (run.stopping, run.reason, run.phase, run.unknown) == (
        BOOM, "failure", COMPENSATING, ("x",),
    )  # fmt: skip
    with pytest.raises(IllegalMove, match="compensating cannot become compensating"):
        FOLDS[BeginCompensation](run, BeginCompensation("failure", BOOM))
    FOLDS[FinishRun](run, FinishRun("failed"))
    assert run.done == ("a",)
    FOLDS[ReopenRun](run, ReopenRun("2", "h2", ("a",)))
    assert (run.stopping, run.reason, run.phase, run.done) == (None, "", FORWARD, ())
    assert run.unknown == ("x",), "nobody knows it yet"
    FOLDS[FinishRun](run, FinishRun("failed"))
    FOLDS[ReopenRun](run, ReopenRun("2", "h2", ("x",)))
    assert run.unknown == ()


@pytest.mark.rule("G-34", "G-32")
@pytest.mark.parametrize("before", list(RUN_MOVES))
@pytest.mark.parametrize("after", ["opened", "reopened", "completed", "failed", "canceled"])
def test_folding_moves_a_run_legally_or_refuses(before: str, after: Any) -> None:
    run = Run("g", "r1", status=before)
    opening = {
        "opened": OpenRun("g", "r1", "1", "h", "3.11"),
        "reopened": ReopenRun("2", "h2", ()),
    }
    action = opening.get(after) or FinishRun(after)
    status = "running" if after in opening else after
    if status in RUN_MOVES[before] and (after == "opened") == (before == NEW):
        FOLDS[type(action)](run, action)
        assert run.status == status
    else:
        with pytest.raises(IllegalMove):
            FOLDS[type(action)](run, action)


def test_a_wait_is_folded_with_what_it_waits_for_and_forgets_it_when_it_ends() -> None:
    run = a_run(NEW)
    FOLDS[CreateTask](run, CreateTask("t1", "a", "waiting", wake_at=7, awaited_signal="go"))
    assert (run.nodes["a"].wake_at, run.nodes["a"].awaited_signal) == (7, "go")
    FOLDS[ResolveWait](run, ResolveWait("t1", "a", "completed"))
    assert (run.nodes["a"].wake_at, run.nodes["a"].awaited_signal) == (None, None)


def test_a_pending_repeat_is_folded_with_its_time() -> None:
    run = a_run("pending")
    FOLDS[RetryTask](run, RetryTask("t1", "a", 0, BOOM, 5))
    assert (run.nodes["a"].attempt, run.nodes["a"].not_before) == (1, 5)


@pytest.mark.rule("G-30", "G-31", "D-34")
def test_kept_signals_stand_in_the_snapshot_oldest_first_until_consumed() -> None:
    run = a_run("pending")
    for action in (
        BufferSignal("m1", "go", text(1)),
        BufferSignal("m2", "go"),
        BufferSignal("m3", "stop", payload_ref=0),
    ):
        FOLDS[BufferSignal](run, action)
    assert [(s.id, s.name, s.payload and bytes(s.payload)) for s in run.signals] == [
        ("m1", "go", b"1"), ("m2", "go", b"null"), ("m3", "stop", None),
    ]  # fmt: skip
    FOLDS[ConsumeSignal](run, ConsumeSignal("m1", "a"))
    assert [signal.id for signal in run.signals] == ["m2", "m3"]
    with pytest.raises(IllegalMove, match="m1 is not kept"):
        FOLDS[ConsumeSignal](run, ConsumeSignal("m1", "a"))


@pytest.mark.rule("G-32")
def test_reopening_forgets_the_reset_nodes_and_keeps_the_rest() -> None:
    run = Run("g", "r1", "1", "h", status="failed", input=text(1), config=text(2), deadline=9)
    run.nodes = {
        "a": NodeState("t1", "completed", completed_no=1),
        "b": NodeState("t2", "failed"),
        "c": NodeState("t3", "failed"),
        "d": NodeState("t4", "canceled"),
    }
    run.completed, run.failures = 1, (("b", BOOM), ("c", BOOM))
    run.signals = (KeptSignal("m1", "go", text(1)),)
    FOLDS[ReopenRun](run, ReopenRun("2", "h2", ("b", "d", "never-reached"), config=text(3)))
    assert list(run.nodes) == ["a", "c"]
    assert (run.failures, run.old_failures, run.completed) == ((("c", BOOM),), 1, 1)
    assert (run.status, run.version, run.hash, run.deadline) == ("running", "2", "h2", None)
    assert (bytes(run.input or b""), bytes(run.config or b"")) == (b"1", b"3")
    assert len(run.signals) == 1


def test_a_new_input_that_stands_apart_is_unknown_until_it_is_fetched() -> None:
    run = Run("g", "r1", "1", "h", status="failed", input=text(1), config=text(2))
    FOLDS[ReopenRun](run, ReopenRun("2", "h2", (), input_ref=0, deadline=5))
    assert (run.input, bytes(run.config or b""), run.deadline) == (None, b"2", 5)


def test_a_journal_that_is_not_whole_refuses_to_fold() -> None:
    # scenario 13
    run = Run()
    fold_transition(run, Transition(1, [OpenRun("g", "r1", "1", "h", "3.11")]))
    with pytest.raises(IllegalMove):
        fold_transition(run, Transition(2, [OpenRun("g", "r1", "1", "h", "3.11")]))


@pytest.mark.rule("G-25")
def test_a_dispatch_changes_nothing_that_is_routed_on() -> None:
    run = a_run("pending")
    before = msgspec.json.encode(run)
    FOLDS[DispatchTask](run, DispatchTask("t1", "a", 0, 99))
    assert msgspec.json.encode(run) == before


def test_what_was_read_for_nothing_moves_time_and_nothing_else() -> None:
    run = a_run("pending")
    run.crashes = 2
    fold_transition(run, Transition(8, [Ignored("late"), Refused("the run is completed")]))
    assert (run.at, run.crashes, run.nodes, run.active) == (8, 0, a_run("pending").nodes, 1)


def test_takeovers_are_counted_until_anything_else_is_recorded() -> None:
    run = a_run("pending")
    for at in (1, 2):
        fold_transition(run, Transition(at, [Claimed("w2")]))
    assert run.crashes == 2
    fold_transition(run, Transition(3, [SetPaused(True)]))
    assert (run.crashes, run.paused) == (0, True)


def test_a_drawing_shows_every_move_and_no_other() -> None:
    assert drawn({NEW: frozenset({"b", "a"}), "a": frozenset({"b"}), "b": frozenset()}) == (
        "stateDiagram-v2\n    [*] --> a\n    [*] --> b\n    a --> b\n    b --> [*]"
    )


def test_the_page_of_moves_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page.count("```mermaid") == 3
    for moves in (TASK_MOVES, RUN_MOVES, PHASE_MOVES):
        assert f"```mermaid\n{drawn(moves)}\n```" in page
