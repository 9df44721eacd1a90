"""Course: how a run went, as a drawing shows it: each node's state, and which edges were taken.

Folded from the records of a run's history (`Run.history()`); knows no clock, so that the same
history is always the same drawing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

import msgspec

State = Literal[
    "completed", "running", "retrying", "waiting", "failed", "canceled", "skipped", "compensated",
    "pending",
]  # fmt: skip
#: How an edge stands: taken, given up, or not decided yet.
Passage = Literal["taken", "left", "open"]

#: What a run's history calls the state of a task, and what it means here.
_STATES: Final[Mapping[str, State]] = {
    "pending": "running", "waiting": "waiting", "completed": "completed", "failed": "failed",
    "skipped": "skipped", "canceled": "canceled",
}  # fmt: skip

#: The states of nodes that others have gone on from.
_LEFT_BEHIND: Final = ("completed", "skipped", "compensated")


class Mark(msgspec.Struct):
    """A node's state. `attempt` counts from 1, 0 = none was needed. `remark`: why it failed, or
    what it waits for."""

    state: State
    attempt: int = 0
    remark: str = ""
    branches: tuple[str, ...] | None = None


class Course:
    """`marks` by node, without the nodes that were not reached; `run`: workflow/id, `status`."""

    def __init__(self) -> None:
        self.run = ""
        self.status = "running"
        self.marks: dict[str, Mark] = {}

    def passage(self, source: str, target: str) -> Passage:
        """How the edge between these nodes stands."""
        mark = self.marks.get(source)
        if mark is None or mark.state not in _LEFT_BEHIND:
            return "open"
        chosen = mark.branches is None or target in mark.branches
        # A skipped node whose branches are recorded was skipped by its own condition.
        went = mark.state != "skipped" or mark.branches is not None
        return "taken" if went and chosen else "left"

    def take(self, record: Mapping[str, Any]) -> None:
        """Fold one record."""
        fold = _FOLDS.get(record["do"])
        if fold is not None:
            fold(self, record)

    # ------------------------------------------------------------------ one record each

    def _opened(self, record: Mapping[str, Any]) -> None:
        self.run = f"{record['definition']}/{record['id']}"

    def _created(self, record: Mapping[str, Any]) -> None:
        branches = record.get("branches")
        self.marks[record["node"]] = mark = Mark(
            _STATES.get(record["status"], "running"),
            branches=None if branches is None else tuple(branches),
        )
        if mark.state == "waiting" and record.get("awaited_signal"):
            mark.remark = f"for signal {record['awaited_signal']}"
        self._failure(mark, record)

    def _dispatched(self, record: Mapping[str, Any]) -> None:
        mark = self._mark(record["node"])
        mark.state, mark.attempt = "running", record["attempt"]

    def _asked(self, record: Mapping[str, Any]) -> None:
        mark = self._mark(record["node"])
        mark.state, mark.remark = "running", f"run {record['definition']}/{record['id']}"

    def _ended(self, record: Mapping[str, Any]) -> None:
        mark = self._mark(record["node"])
        mark.state = "completed" if record["do"] == "CompleteTask" else "failed"
        mark.attempt, mark.remark = record["attempt"], ""
        self._failure(mark, record)

    def _undone(self, record: Mapping[str, Any]) -> None:
        self._mark(record["node"]).state = "compensated"

    def _retried(self, record: Mapping[str, Any]) -> None:
        mark = self._mark(record["node"])
        mark.state, mark.attempt = "retrying", record["attempt"] + 1
        self._failure(mark, record)

    def _resolved(self, record: Mapping[str, Any]) -> None:
        mark = self._mark(record["node"])
        mark.state, mark.remark = _STATES.get(record["status"], "completed"), ""
        self._failure(mark, record)

    def _given_up(self, record: Mapping[str, Any]) -> None:
        for node in record.get("nodes", ()):
            mark = self._mark(node)
            mark.state = _STATES.get(record.get("status", "failed"), "failed")
            self._failure(mark, record)

    def _reopened(self, record: Mapping[str, Any]) -> None:
        self.status = "running"
        for node in record.get("reset", ()):
            self.marks.pop(node, None)

    def _paused(self, record: Mapping[str, Any]) -> None:
        self.status = "paused" if record.get("paused", False) else "running"

    def _finished(self, record: Mapping[str, Any]) -> None:
        self.status = record["status"]

    def _mark(self, node: str) -> Mark:
        return self.marks.setdefault(node, Mark("running"))

    def _failure(self, mark: Mark, record: Mapping[str, Any]) -> None:
        failure = record.get("failure")
        if failure is not None:
            mark.remark = f"{failure['kind']}: {failure['message']}"


_FOLDS: Final[Mapping[str, Callable[[Course, Mapping[str, Any]], None]]] = {
    "OpenRun": Course._opened,
    "CreateTask": Course._created,
    "DispatchTask": Course._dispatched,
    "StartChild": Course._asked,
    "CompleteTask": Course._ended,
    "FailTask": Course._ended,
    "RetryTask": Course._retried,
    "CompensateTask": Course._undone,
    "ResolveWait": Course._resolved,
    "CancelTasks": Course._given_up,
    "ReopenRun": Course._reopened,
    "SetPaused": Course._paused,
    "FinishRun": Course._finished,
}


def course_of(history: Iterable[Mapping[str, Any]]) -> Course:
    """How the run went that these records are of, oldest first."""
    course = Course()
    for record in history:
        course.take(record)
    return course
