"""Watches a run's journal grow and holds every transition against what must never happen.

Keeps a snapshot of its own, folded action by action, so that each action is judged by the state it
met. Knows nothing of how the machine decides.
"""

from __future__ import annotations

from perdure.kernel.actions import (
    BufferSignal,
    CancelTasks,
    ConsumeSignal,
    CreateTask,
    FinishRun,
    OpenRun,
    ReopenRun,
    ResolveWait,
    Transition,
)
from perdure.kernel.fold import FOLDS
from perdure.kernel.run import NodeState, Run
from perdure.model.status import ACTIVE
from tests.property.kernel.graphs import Drawn, Link


class Watched:
    """What the journal has shown so far."""

    def __init__(self, graph: Drawn) -> None:
        self.graph = graph
        self.run = Run()
        #: Nodes that begin whatever their edges say, in the transition being looked at.
        self.begun: set[str] = set()
        self.tasks: set[str] = set()
        self.kept: set[str] = set()
        self.consumed: list[str] = []

    def see(self, transition: Transition, begun: set[str]) -> None:
        """Check a recorded transition; `begun`: where a start or a retry may begin."""
        assert transition.at >= self.run.at
        self.run.at = transition.at
        self.begun = begun
        for action in transition.actions:
            self._check(action)
            FOLDS[type(action)](self.run, action)
        assert sum(state.status in ACTIVE for state in self.run.nodes.values()) == self.run.active
        assert (self.run.status == "running") == (self.run.active > 0)
        resolved = [a for a in transition.actions if type(a) is ResolveWait]
        assert not transition.signal_delivered or len(resolved) == 1
        self._no_kept_signal_is_awaited()

    def _check(self, action: object) -> None:
        if isinstance(action, CreateTask):
            assert action.task not in self.tasks, "one task, one id"
            self.tasks.add(action.task)
            assert action.node not in self.run.nodes, "one task per node and epoch"
            if action.node not in self.begun:
                self._edges_allow(action)
        elif isinstance(action, ConsumeSignal):
            assert action.signal in self.kept
            assert action.signal not in self.consumed, "one signal, one consumer"
            self.consumed.append(action.signal)
        elif isinstance(action, BufferSignal):
            assert action.signal not in self.kept
            self.kept.add(action.signal)
        elif isinstance(action, CancelTasks):
            assert all(self.run.nodes[node].status in ACTIVE for node in action.nodes)
        elif isinstance(action, ReopenRun):
            assert self.run.active == 0
        elif isinstance(action, FinishRun):
            assert self.run.active == 0, "a run ends only when nothing is active"
            if action.status == "completed":
                self._nothing_is_missing()
        else:
            assert not isinstance(action, OpenRun) or self.run.status == "new"

    def _edges_allow(self, action: CreateTask) -> None:
        """A node runs or is skipped only once its incoming edges are resolved."""
        links = self.graph.incoming(action.node)
        assert links
        sources = {self.run.nodes[link.source].status for link in links}
        assert sources <= {"completed", "skipped"}
        assert (action.status == "skipped") == (not any(map(self._active, links)))

    def _active(self, link: Link) -> bool:
        state = self.run.nodes.get(link.source)
        if state is None or state.status != "completed":
            return False
        return state.branches is None or link.target in state.branches

    def _nothing_is_missing(self) -> None:
        """Success: nothing failed or was given up, and no active edge leads nowhere."""
        assert {s.status for s in self.run.nodes.values()} <= {"completed", "skipped"}
        for link in self.graph.links:
            assert link.target in self.run.nodes or not self._active(link)

    def _no_kept_signal_is_awaited(self) -> None:
        names = {signal.name for signal in self.run.signals}
        assert not names & {state.awaited_signal for state in self.waiting()}

    def waiting(self) -> list[NodeState]:
        return [state for state in self.run.nodes.values() if state.status == "waiting"]
