"""What is known of the ends of attempts, worked out from the events alone.

Knows nothing of the snapshot's own book: the two are compared at every action that ends a task or
an attempt of one.
"""

from __future__ import annotations

from typing import Any

from perdure.kernel.actions import CancelTasks, CompleteTask, FailTask, ReopenRun, RetryTask
from perdure.kernel.events import AttemptGivenUp, ChildFinished, NodeFailed, TimerFired
from perdure.kernel.run import GRACE, NodeState

_NO_ANSWER = ("workflow.timeout", "workflow.canceled")


class Doubts:
    """Of the tasks of one run."""

    def __init__(self) -> None:
        #: Tasks an attempt of which did nobody knows what.
        self.tasks: set[str] = set()
        #: Nodes that ended so, and were not begun again.
        self.ended: list[str] = []
        #: What happens now.
        self.event: Any = None

    def judge(self, action: Any, nodes: dict[str, NodeState]) -> None:
        """Hold what is recorded of a task against what happened."""
        if isinstance(action, RetryTask):
            assert action.unknown == self._now(action.node, action.task)
            if action.unknown:
                self.tasks.add(action.task)
        elif isinstance(action, FailTask):
            self._ends(action.node, nodes[action.node], action.unknown, awaited=self._reports)
        elif isinstance(action, CancelTasks):
            for node in action.nodes:
                awaited = action.status == "canceled"
                self._ends(node, nodes[node], action.unknown, awaited=awaited)
        elif isinstance(action, CompleteTask):
            self.tasks.discard(action.task)
        elif isinstance(action, ReopenRun):
            self.ended = [node for node in self.ended if node not in action.reset]

    @property
    def _reports(self) -> bool:
        """Whether it is told of an attempt, and not ordered."""
        return isinstance(self.event, NodeFailed | ChildFinished | TimerFired)

    def _ends(self, node: str, state: NodeState, unknown: bool, *, awaited: bool) -> None:
        child = state.child
        unheard = child is not None and child.created is None and not state.not_before
        doubted = self._now(node, state.task) or state.task in self.tasks
        if not isinstance(self.event, ChildFinished) or self.event.node != node:
            doubted = doubted or (unheard and not self._told(node))
        # An end that is awaited is told exactly; else what may be under way is not known either.
        assert unknown == doubted if awaited else unknown >= doubted
        if unknown:
            self.ended.append(node)

    def _told(self, node: str) -> bool:
        """Whether this very node's attempt is what is told of."""
        return isinstance(self.event, NodeFailed | AttemptGivenUp) and self.event.node == node

    def _now(self, node: str, task: str) -> bool:
        """Whether this event says that nobody knows what the attempt did."""
        event = self.event
        if isinstance(event, TimerFired):
            return event.node == node or event.node == GRACE
        if getattr(event, "node", "") != node:
            return False
        if isinstance(event, AttemptGivenUp):
            return event.begun
        if isinstance(event, NodeFailed):
            return event.failure.kind in _NO_ANSWER if event.unknown is None else event.unknown
        if not isinstance(event, ChildFinished):
            return False
        failure = event.failure
        if failure is None:
            return event.status == "completed"  # its output could not be read
        if isinstance(failure.details, dict):
            left = set(failure.details["unknown"]) - set(failure.details["undone"])
            return bool(left or failure.details["undo_failed"])
        return event.status == "canceled" or failure.kind in _NO_ANSWER
