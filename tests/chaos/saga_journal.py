"""What is recorded of one run of a saga, as far as undoing goes."""

from __future__ import annotations

from typing import Any

from perdure.kernel.actions import (
    BeginCompensation,
    CancelTasks,
    CompensateTask,
    CompleteTask,
    CreateTask,
    FailTask,
    FinishRun,
)
from perdure.model.failure import FailureRecord


class Journal:
    """What is recorded of one run, as the names of its steps."""

    def __init__(self, actions: list[Any]) -> None:
        #: What completed, or may have, in that order; and what is known to have.
        self.done: list[str] = []
        self.known: list[str] = []
        #: Of which nobody knows what it did.
        self.unknown: list[str] = []
        self.begun: list[str] = []
        self.undone: list[str] = []
        self.ends: list[FinishRun] = []
        self.causes: list[FailureRecord] = []
        for action in actions:
            self._note(action)

    def _note(self, action: Any) -> None:
        if isinstance(action, CompleteTask) and not action.node.endswith("~undo"):
            self.done.append(action.node)
            self.known.append(action.node)
        elif isinstance(action, CancelTasks) and action.unknown:
            self.done += action.nodes
            self.unknown += action.nodes
        elif isinstance(action, FailTask) and action.unknown:
            self.done.append(action.node)
            self.unknown.append(action.node)
        elif isinstance(action, CreateTask) and action.node.endswith("~undo"):
            self.begun.append(action.node.removesuffix("~undo"))
        elif isinstance(action, CompensateTask):
            self.undone.append(action.node)
        elif isinstance(action, FinishRun):
            self.ends.append(action)
        elif isinstance(action, BeginCompensation):
            self.causes.append(action.failure)
