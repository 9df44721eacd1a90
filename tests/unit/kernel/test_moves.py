"""Every legal move, and every other one refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure.kernel.actions import (
    Action,
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    OpenRun,
    RetryTask,
    Transition,
)
from perdure.kernel.fold import FOLDS, fold_transition
from perdure.kernel.moves import (
    NEW,
    RUN_MOVES,
    TASK_MOVES,
    IllegalMove,
    check_run,
    check_task,
    drawn,
)
from perdure.kernel.run import NodeState, Run
from perdure.model.failure import FailureRecord
from perdure.model.status import RESOLVED, TERMINAL

BOOM = FailureRecord("Error", "boom")
PAGE = Path(__file__).parents[3] / "docs" / "reference" / "moves.md"

#: Each action about a task, and the status it leads to.
TASK_ACTIONS: list[tuple[Action, str]] = [
    *[(CreateTask("t1", "a", s), s) for s in ("pending", "completed", "skipped")],
    (CreateTask("t1", "a", "failed", failure=BOOM), "failed"),
    (CompleteTask("t1", "a"), "completed"),
    (FailTask("t1", "a", 0, BOOM), "failed"),
    (RetryTask("t1", "a", 0, BOOM, 5), "pending"),
]


def test_the_tables_are_exactly_these() -> None:
    assert {
        "new": {"pending", "completed", "skipped", "failed"},
        "pending": {"pending", "completed", "failed"},
        "completed": set(),
        "skipped": set(),
        "failed": set(),
    } == TASK_MOVES
    assert {
        "new": {"running"},
        "running": {"completed", "failed"},
        "completed": set(),
        "failed": set(),
    } == RUN_MOVES


def test_nothing_leaves_a_resolved_or_terminal_status() -> None:
    assert all(not TASK_MOVES[status] for status in RESOLVED & set(TASK_MOVES))
    assert all(not RUN_MOVES[status] for status in TERMINAL & set(RUN_MOVES))


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


def a_run(status: str) -> Run:
    """A run with one node in this status."""
    run = Run("g", "r1", status="running", active=int(status == "pending"))
    if status != NEW:
        run.nodes["a"] = NodeState("t1", status)
    return run


@pytest.mark.rule("G-6", "G-24", "G-26", "G-27", "G-28")
@pytest.mark.parametrize("before", list(TASK_MOVES))
@pytest.mark.parametrize(("action", "after"), TASK_ACTIONS, ids=lambda v: str(type(v).__name__))
def test_folding_moves_a_task_legally_or_refuses(before: str, action: Action, after: str) -> None:
    run = a_run(before)
    if after in TASK_MOVES[before] and (type(action) is CreateTask) == (before == NEW):
        FOLDS[type(action)](run, action)
        assert run.nodes["a"].status == after
        assert run.active == int(after == "pending")
        assert run.failed == int(after == "failed")
    else:
        with pytest.raises(IllegalMove):
            FOLDS[type(action)](run, action)


@pytest.mark.rule("G-34")
@pytest.mark.parametrize("before", list(RUN_MOVES))
@pytest.mark.parametrize("after", ["running", "completed", "failed"])
def test_folding_moves_a_run_legally_or_refuses(before: str, after: str) -> None:
    run = Run("g", "r1", status=before)
    opening = after == "running"
    ended: Any = after
    action = OpenRun("g", "r1", "1", "h", "3.11") if opening else FinishRun(ended)
    if after in RUN_MOVES[before]:
        FOLDS[type(action)](run, action)
        assert run.status == after
    else:
        with pytest.raises(IllegalMove):
            FOLDS[type(action)](run, action)


def test_a_journal_that_is_not_whole_refuses_to_fold() -> None:
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


def test_a_drawing_shows_every_move_and_no_other() -> None:
    assert drawn({NEW: frozenset({"b", "a"}), "a": frozenset({"b"}), "b": frozenset()}) == (
        "stateDiagram-v2\n    [*] --> a\n    [*] --> b\n    a --> b\n    b --> [*]"
    )


def test_the_page_of_moves_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert page.count("```mermaid") == 2
    for moves in (TASK_MOVES, RUN_MOVES):
        assert f"```mermaid\n{drawn(moves)}\n```" in page
