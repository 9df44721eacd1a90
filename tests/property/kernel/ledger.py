"""Holds every transition of a run that can be undone against what must never happen.

What Watched checks, and that undoing begins when the run has come to rest, goes by the order of
completion one at a time, leaves nothing out, and never touches a run that succeeded.
"""

from __future__ import annotations

from perdure.kernel.actions import (
    BeginCompensation,
    CancelTasks,
    CompensateTask,
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    ReopenRun,
    RetryTask,
    StartChild,
)
from perdure.kernel.plan import UNDO, GraphPlan, undo_of
from perdure.kernel.run import COMPENSATING, FORWARD, GRACE
from perdure.model.failure import FailureRecord
from tests.property.kernel.doubts import Doubts
from tests.property.kernel.graphs import Drawn, Link
from tests.property.kernel.watched import Watched


class Ledger(Watched):
    """What was done, and what of it was undone."""

    def __init__(self, graph: Drawn, plan: GraphPlan) -> None:
        super().__init__(graph)
        self.plan = plan
        #: Why the run is being undone, once it is.
        self.why: FailureRecord | None = None
        self.undone: list[str] = []
        self.completed_undo: str | None = None
        #: What is known of how attempts ended, by the events.
        self.doubts = Doubts()

    def due(self) -> list[str]:
        """What is to be undone, the next one first."""
        found = []
        for node, state in self.run.nodes.items():
            undo = self.plan.undos.get(undo_of(node))
            if undo is None or undo_of(node) in self.run.nodes:
                continue
            unknown = node in self.run.unknown and state.status in ("canceled", "failed")
            if state.status == "completed" or (unknown and undo.unknown):
                found.append((state.completed_no, node))
        return [node for _, node in sorted(found, reverse=True)]

    def _check(self, action: object) -> None:
        node = getattr(action, "node", "")
        if self.plan.undoes and not node.endswith(UNDO):
            self.doubts.judge(action, self.run.nodes)
            assert isinstance(action, FailTask | CancelTasks | ReopenRun) or (
                sorted(self.doubts.ended) == sorted(self.run.unknown)
            )
        if node == GRACE:
            assert self.run.stopping is not None
            assert self.run.phase == FORWARD
        elif node.endswith(UNDO):
            self._of_undo(action, node)
        elif isinstance(action, CreateTask | RetryTask | DispatchTask | StartChild):
            assert self.run.stopping is None, "nothing begins once the run is to stop"
            super()._check(action)
        elif isinstance(action, CompensateTask):
            assert self.completed_undo == undo_of(action.node), "undone once its undo completed"
            self.completed_undo = None
            self.undone.append(action.node)
        elif isinstance(action, BeginCompensation):
            assert self.run.active == 0, "the run comes to rest before anything is undone"
            assert action.reason in self.plan.undo_on
            assert action.unknown == self.run.unknown
            assert self.due()
            self.why = action.failure
        else:
            self._of_run(action)
            super()._check(action)

    def _of_undo(self, action: object, node: str) -> None:
        assert self.run.phase == COMPENSATING
        if isinstance(action, CreateTask):
            assert action.task not in self.tasks
            self.tasks.add(action.task)
            assert self.run.active == 0, "one at a time"
            assert undo_of(self.due()[0]) == node, "the last that completed first"
        elif isinstance(action, CompleteTask):
            self.completed_undo = node

    def _of_run(self, action: object) -> None:
        if isinstance(action, ReopenRun):
            left = self.run.nodes.keys() - set(action.reset)
            assert not any(n.endswith(UNDO) or n == GRACE for n in left)
            assert all(self.run.nodes[n].status != "compensated" for n in left)
            self.why, self.undone = None, []
        elif isinstance(action, FinishRun):
            self._ends(action)

    def _ends(self, action: FinishRun) -> None:
        run, plan = self.run, self.plan
        if action.status == "completed":
            assert (run.phase, run.stopping, self.undone) == (FORWARD, None, [])
            return
        assert action.failure is not None
        reason = run.reason or ("cancel" if action.status == "canceled" else "failure")
        if self.doubts.ended:
            assert action.failure.details["unknown"] == list(run.unknown)
        if self.why is None:
            timed_out = action.failure.kind == "workflow.timeout" and reason == "failure"
            assert reason not in plan.undo_on or timed_out or not self.due()
            return
        assert self.due() == []
        assert (action.failure.kind, action.failure.message) == (self.why.kind, self.why.message)
        assert action.status == ("canceled" if reason == "cancel" else "failed")
        failed = [n.removesuffix(UNDO) for n, s in run.nodes.items()
                  if n.endswith(UNDO) and s.status == "failed"]  # fmt: skip
        told = action.failure.details
        assert (told["undone"], told["unknown"]) == (self.undone, list(run.unknown))
        assert sorted(told["undo_failed"]) == sorted(failed)

    # ------------------------------------------------------------------ gates

    def _edges_allow(self, action: CreateTask) -> None:
        if action.status == "skipped" and action.branches is not None:
            assert any(map(self._active, self.graph.incoming(action.node)))
        else:
            super()._edges_allow(action)

    def _active(self, link: Link) -> bool:
        state = self.run.nodes.get(link.source)
        if state is not None and state.status == "skipped":
            return state.branches is not None
        return super()._active(link)
