"""What was recorded of a rehearsal, folded: the nodes that were reached, the route, the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from perdure.graph.definition import Graph
from perdure.graph.draw.course import Course, course_of

#: Of nodes that are part of the route.
_RAN: Final = ("completed", "failed", "canceled", "running", "retrying", "waiting")


class NodeRun(msgspec.Struct):
    """A node that was reached. `began` and `ended` in seconds of virtual time since the start;
    `attempt` from 1, 0 = none was needed."""

    node: str
    status: str
    attempt: int = 0
    began: float = 0.0
    ended: float | None = None
    output: Any = None
    failure: Mapping[str, Any] | None = None
    branches: tuple[str, ...] | None = None


class Recorded:
    """What came of a rehearsal, by its history; see Rehearsal."""

    def __init__(
        self,
        graph: Graph,
        history: Sequence[Mapping[str, Any]],
        started: datetime,
        *,
        reason: str = "",
        stalled: bool = False,
        notes: Sequence[str] = (),
        expected: Mapping[str, Any] | None = None,
    ) -> None:
        self.graph = graph
        self.history = tuple(history)
        self.started = started
        self.reason = reason
        self.notes = tuple(notes)
        self.expected = expected or {}
        self.nodes: dict[str, NodeRun] = {}
        self.output: Any = None
        self.failure: Mapping[str, Any] | None = None
        self.seconds = 0.0
        self._course = course_of(history)
        self.status = self._course.status
        for record in history:
            self._take(record)
        if self.status in ("running", "paused"):
            self.status = "stalled" if stalled else "waiting"

    @property
    def route(self) -> tuple[str, ...]:
        """The nodes that ran, were waited in or failed, in the order they were reached."""
        return tuple(node for node, run in self.nodes.items() if run.status in _RAN)

    @property
    def skipped(self) -> tuple[str, ...]:
        """The nodes that were passed over."""
        return tuple(node for node, run in self.nodes.items() if run.status == "skipped")

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The edges that were taken, in the document's order."""
        edges = self.graph.plan.shape.edges
        passage = self._course.passage
        return tuple(
            (edge.source, edge.target)
            for edge in edges
            if passage(edge.source, edge.target) == "taken"
        )

    @property
    def course(self) -> Course:
        """How the run went, as drawings show it."""
        return self._course

    # ------------------------------------------------------------------ folding the history

    def _take(self, record: Mapping[str, Any]) -> None:
        after = (record["time"] - self.started).total_seconds()
        kind = record["do"]
        self.seconds = max(self.seconds, after)
        if kind == "FinishRun":
            self.output, self.failure = record.get("output"), record.get("failure")
        elif kind == "CreateTask":
            self._reached(record, after)
        elif kind in ("CompleteTask", "FailTask", "RetryTask", "ResolveWait", "CancelTasks"):
            for node in record.get("nodes", (record.get("node"),)):
                self._moved(self.nodes[node], record, after)
        elif kind in ("DispatchTask", "StartChild"):
            self.nodes[record["node"]].attempt = record["attempt"]

    def _reached(self, record: Mapping[str, Any], after: float) -> None:
        branches = record.get("branches")
        run = self.nodes[record["node"]] = NodeRun(
            record["node"],
            self._course.marks[record["node"]].state,
            began=after,
            output=record.get("output"),
            failure=record.get("failure"),
            branches=None if branches is None else tuple(branches),
        )
        if record["status"] not in ("pending", "waiting"):
            run.ended = after

    def _moved(self, run: NodeRun, record: Mapping[str, Any], after: float) -> None:
        run.failure = record.get("failure")
        if "attempt" in record:
            run.attempt = record["attempt"]
        if record["do"] == "RetryTask":
            run.attempt += 1
            return
        run.ended, run.output = after, record.get("output")
