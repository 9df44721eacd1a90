"""Fold: how each action changes the snapshot.

The same functions serve the live machine (at emission, G-5) and loading (row by row), which is
why folding a journal gives the very snapshot the live machine had (G-6). Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perdure.kernel.actions import (
    Claimed,
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    OpenRun,
    RetryTask,
    Transition,
)
from perdure.kernel.moves import NEW, TASK_MOVES, IllegalMove, check_run, check_task
from perdure.kernel.run import NodeState, Run
from perdure.model.failure import FailureRecord


def open_run(run: Run, action: OpenRun) -> None:
    """The run exists: its context is set."""
    check_run(run.status, "running")
    run.definition, run.id = action.definition, action.id
    run.version, run.hash, run.python = action.version, action.hash, action.python
    run.input, run.config = action.input, action.config
    run.metadata, run.deadline = action.metadata, action.deadline
    run.status = "running"


def create_task(run: Run, action: CreateTask) -> None:
    """A node is reached. A created task is at attempt 0 (G-24)."""
    node, status = action.node, action.status
    if node in run.nodes:
        raise IllegalMove(f"node {node} has a task already: it is {run.nodes[node].status}")
    if status not in TASK_MOVES[NEW]:
        check_task(node, NEW, status)
    number = due = 0
    if status == "pending":
        run.active += 1
        due = run.at
    elif status == "completed":
        run.completed = number = run.completed + 1
    elif status == "failed":
        _count_failure(run, node, action.failure)
    run.nodes[node] = NodeState(action.task, status, 0, action.branches, number, due)


def moving(run: Run, node: str, after: str) -> NodeState:
    """The state that a node's task leaves for another status."""
    state = run.nodes.get(node)
    if state is None:
        raise IllegalMove(f"node {node} has no task")
    if after not in TASK_MOVES[state.status]:
        check_task(node, state.status, after)
    return state


def complete_task(run: Run, action: CompleteTask) -> None:
    """An active task ended well."""
    before = moving(run, action.node, "completed")
    run.active -= 1
    run.completed += 1
    run.nodes[action.node] = NodeState(
        before.task, "completed", before.attempt, None, run.completed
    )


def fail_task(run: Run, action: FailTask) -> None:
    """An active task failed for good."""
    before = moving(run, action.node, "failed")
    run.active -= 1
    _count_failure(run, action.node, action.failure)
    run.nodes[action.node] = NodeState(before.task, "failed", before.attempt)


def retry_task(run: Run, action: RetryTask) -> None:
    """The next attempt of the same task: reports of the one before are stale from here (G-40)."""
    before = moving(run, action.node, "pending")
    attempt, due = action.attempt + 1, before.first_due
    run.nodes[action.node] = NodeState(before.task, "pending", attempt, first_due=due)


def finish_run(run: Run, action: FinishRun) -> None:
    """The run ended."""
    check_run(run.status, action.status)
    run.status = action.status


def nothing(run: Run, action: DispatchTask) -> None:
    """Changes nothing that is routed on (G-25)."""


def claimed(run: Run, action: Claimed) -> None:
    """A takeover: counted until the run makes progress (any other row)."""
    run.crashes += 1


def _count_failure(run: Run, node: str, failure: FailureRecord | None) -> None:
    run.failed += 1
    if run.first_failure is None:
        run.first_failure = (node, failure or FailureRecord("unknown", "no reason recorded"))


FOLDS: dict[type, Callable[[Run, Any], None]] = {
    OpenRun: open_run,
    CreateTask: create_task,
    DispatchTask: nothing,
    CompleteTask: complete_task,
    FailTask: fail_task,
    RetryTask: retry_task,
    FinishRun: finish_run,
    Claimed: claimed,
}


def fold_transition(run: Run, transition: Transition) -> None:
    """Fold a recorded transition. Raises IllegalMove when no rule allows it."""
    run.at = transition.at
    for action in transition.actions:
        if type(action) is not Claimed:
            run.crashes = 0
        FOLDS[type(action)](run, action)


def fold(transitions: Iterable[Transition]) -> Run:
    """The snapshot of a journal."""
    run = Run()
    for transition in transitions:
        fold_transition(run, transition)
    return run
