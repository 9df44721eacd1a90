"""Any graph with any undos and gates, whatever happens to its run and whenever: what was done is
undone as it should be, and every run ends.

Ledger judges every action; the harness compares the snapshot with the folded journal after every
event, and another process takes over at any time, also in the middle of undoing.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.kernel.actions import Transition
from perdure.kernel.events import (
    AttemptGivenUp,
    ChildFinished,
    DeadlineReached,
    Event,
    NodeCompleted,
    NodeFailed,
    RunCancelled,
    RunRetried,
)
from perdure.kernel.plan import UNDO, UNDO_ON, GraphPlan, PlannedUndo
from perdure.kernel.run import FORWARD
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord
from perdure.model.policy import RetryPolicy
from tests.property.kernel.graphs import Drawn, graphs
from tests.property.kernel.ledger import Ledger
from tests.property.kernel.test_restless import Restless
from tests.property.kernel.test_runs import Data, pending
from tests.unit.kernel.harness import NEW_YEAR, Harness, text
from tests.unit.kernel.undo.drawing import Gate, undoable

UNDOS = st.builds(
    PlannedUndo,
    retry=st.sampled_from([RetryPolicy(), RetryPolicy(attempts=2, initial=SECOND)]),
    unknown=st.booleans(),
)
#: Kinds and details of runs that failed or were canceled.
CHILD_ENDS: list[tuple[str, Any]] = [
    ("workflow.timeout", None),
    ("Boom", {"undone": ["x"], "undo_failed": [], "unknown": ["x"]}),
    ("workflow.timeout", {"undone": [], "undo_failed": [], "unknown": []}),
    ("Boom", {"undone": ["x"], "undo_failed": ["y"], "unknown": []}),
    ("Boom", {"undone": [], "undo_failed": [], "unknown": ["x"]}),
]
GATES: st.SearchStrategy[bool | Exception] = st.sampled_from([True, True, False, ValueError("no")])


@st.composite
def undoables(draw: st.DrawFn, graph: Drawn) -> GraphPlan:
    """The graph's plan; most of its nodes have undos, some have gates."""
    tasks = [node.id for node in graph.nodes if node.kind in ("TASK", "CHILD")]
    undone = [node for node in tasks if draw(st.integers(0, 3))]
    gated = [
        node.id for node in graph.nodes if node.kind == "TASK" and draw(st.integers(0, 4)) == 0
    ]
    timeouts = {node: draw(st.sampled_from([None, 0, 90 * SECOND])) for node in tasks}
    plan = undoable(
        graph.plan(),
        {node: draw(UNDOS) for node in undone},
        undo_on=draw(st.sampled_from([UNDO_ON, UNDO_ON, {"failure"}, {"cancel", "timeout"}])),
        gates={node: Gate(draw(GATES)) for node in gated},
    )
    return with_timeouts(plan, timeouts)


def with_timeouts(plan: GraphPlan, timeouts: dict[str, int | None]) -> GraphPlan:
    """The plan with these timeouts of what workers execute."""
    nodes = {
        id: replace(node, timeout=timeouts[id]) if node.works else node
        for id, node in plan.nodes.items()
    }
    return replace(plan, nodes=nodes)


class Undoing(Restless):
    """A run that can be undone, and everything that may happen to it."""

    def __init__(self, graph: Drawn, plan: GraphPlan, data: Data, deadline: int | None) -> None:
        super().__init__(graph, data, deadline=deadline)
        self.h = Harness(plan, live=True)
        self.watched: Ledger = Ledger(graph, plan)

    def apply(self, event: Event) -> Transition | None:
        self.watched.doubts.event = event
        return super().apply(event)

    def children(self) -> list[Event]:
        """Some say what became of what they did."""
        events = super().children()
        for event in [e for e in events if isinstance(e, ChildFinished) and e.failure is not None]:
            kind, details = self.pick(st.sampled_from(CHILD_ENDS))
            events.append(replace(event, failure=FailureRecord(kind, "late", details=details)))
        return events

    def begins(self, event: RunRetried) -> set[str]:
        again = {n for n, s in self.h.nodes.items() if s.status == "compensated"}
        return again | super().begins(event)

    def reports(self) -> list[Event]:
        """Of what the graph says, and of undos, which do as they like."""
        events: list[Event] = []
        for node in pending(self.h):
            state = self.h.nodes[node]
            if node.endswith(UNDO):
                well = NodeCompleted(state.task, node, state.attempt, text(None), {node: text(1)})
                failure = FailureRecord("Error", "closed", permanent=self.pick(st.booleans()))
                events += [well, well, NodeFailed(state.task, node, state.attempt, failure)]
                continue
            drawn = self.graph.node(node)
            if state.attempt >= drawn.tries and drawn.ends == "well":
                output, noted = text({"n": drawn.number}), {node: text(drawn.number)}
                events.append(NodeCompleted(state.task, node, state.attempt, output, noted))
            else:
                permanent = state.attempt >= drawn.tries and drawn.ends == "permanent"
                kind = self.pick(st.sampled_from(["Error", "Error", "workflow.timeout"]))
                failure = FailureRecord(kind, "boom", permanent=permanent)
                known = self.pick(st.sampled_from([None, None, True, False]))
                events.append(NodeFailed(state.task, node, state.attempt, failure, known))
        return events * 2

    def orders(self) -> list[Event]:
        """Attempts without an outcome among them."""
        lost: list[Event] = [
            AttemptGivenUp(state.task, node, state.attempt, begun)
            for node in pending(self.h)
            for begun in (True, False)
            if (state := self.h.nodes[node])
        ]
        return [*super().orders(), *lost]


def goes_well(event: Any) -> bool:
    """Whether it is no failure of an undo."""
    return isinstance(event, NodeCompleted) or not event.node.endswith(UNDO)


def settled(world: Undoing) -> None:
    """The run ends, or waits for a signal that nobody sent."""
    world.settle()
    run = world.h.run
    if run.status == "running":
        assert run.phase == FORWARD
        waiting = [s for s in run.nodes.values() if s.status == "waiting"]
        assert len(waiting) == run.active
        assert all(s.awaited_signal and s.wake_at is None for s in waiting)
    else:
        assert run.active == 0


@pytest.mark.rule("S-15", "S-16", "S-17", "D-18", "SX-1", "SX-2", "SX-3", "SX-9")
@settings(max_examples=400)
@given(graphs(waiting=True, most=7), st.integers(0, 25), st.data())
def test_whatever_happens_what_was_done_is_undone_and_the_run_ends(
    graph: Drawn, events: int, data: Data
) -> None:
    plan = data.draw(undoables(graph))
    deadline = data.draw(st.none() | st.just(NEW_YEAR + 600 * SECOND))
    world = Undoing(graph, plan, data, deadline)
    if not world.start():
        return
    for _ in range(events):
        world.something()
    settled(world)


@pytest.mark.rule("S-15", "S-17", "D-18")
@settings(max_examples=400)
@given(graphs(most=7), st.data())
def test_a_stop_at_any_moment_leaves_done_only_what_could_not_be_undone(
    graph: Drawn, data: Data
) -> None:
    """With an undo for everything, all of which do well: after a run that ended otherwise than
    well, nothing that completed is left, and of what was given up only what is not to be undone."""
    tasks = [node.id for node in graph.nodes if node.kind == "TASK"]
    sure = {node for node in tasks if data.draw(st.booleans())}
    plan = undoable(graph.plan(), {n: PlannedUndo(unknown=n not in sure) for n in tasks})
    world = Undoing(graph, plan, data, NEW_YEAR + 600 * SECOND)
    h = world.h
    if not world.start():
        return
    stop: Any = data.draw(st.sampled_from([RunCancelled("enough"), DeadlineReached(), None]))
    after = data.draw(st.integers(0, 6))
    for turn in range(200):
        if h.run.status != "running":
            break
        if stop is not None and turn >= after:
            h.advance(600)
            world.apply(stop)
            stop = None
            continue
        events = [e for e in world.reports() if goes_well(e)]
        if h.run.stopping is not None and h.run.phase == FORWARD:
            events += [e for e in world.orders() if isinstance(e, AttemptGivenUp)]
        world.apply(data.draw(st.sampled_from(events)))
    assert h.run.status != "running"
    statuses = {node: h.status(node) for node in tasks}
    if h.run.status == "completed":
        assert world.watched.undone == []
    else:
        assert "completed" not in statuses.values()
        unknown = {node for node in h.run.unknown if statuses[node] in ("canceled", "failed")}
        assert unknown == set(h.run.unknown) & sure
