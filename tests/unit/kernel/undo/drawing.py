"""Draws graphs whose nodes can be undone, and plays their runs.

A saga is such a graph; what its door adds is of no matter here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from perdure.kernel.actions import CreateTask, FinishRun, Transition
from perdure.kernel.events import AttemptGivenUp, DeadlineReached
from perdure.kernel.plan import UNDO, GraphPlan, PlannedUndo
from perdure.model.durations import SECOND
from perdure.model.graph import Edge, GraphShape
from tests.unit.kernel.drawing import Member, chain, edge, fork, task
from tests.unit.kernel.harness import NEW_YEAR, Harness, finish, of, plan_of

Saga = Callable[..., Harness]
GRACE_TIME = 30 * SECOND


def undoable(
    plan: GraphPlan,
    undos: dict[str, PlannedUndo],
    *,
    undo_on: Iterable[str] = ("failure", "timeout", "cancel"),
    gates: dict[str, Gate] | None = None,
    **rest: Any,
) -> GraphPlan:
    """The plan with these undos, and gates."""
    gates = gates or {}
    nodes = {
        id: replace(node, undo=undos.get(id), gate=gates.get(id)) for id, node in plan.nodes.items()
    }
    return replace(plan, nodes=nodes, undo_on=frozenset(undo_on), **rest)


class Gate:
    """Opens as told, or raises."""

    def __init__(self, answer: bool | BaseException) -> None:
        self.answer = answer
        self.asked: list[bytes | None] = []

    def opens(self, input: Raw | None, codec: Any) -> bool:
        self.asked.append(None if input is None else bytes(input))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def line(saga: Saga, *nodes: str, undo: Any = None, **rest: Any) -> Harness:
    """A run of nodes one after the other, each of which has an undo, unless told."""
    drawn = [task(node) for node in nodes]
    return saga(drawn, chain(*nodes), undo=nodes if undo is None else undo, **rest)


def side_by_side(saga: Saga, *nodes: str | Member, **rest: Any) -> Harness:
    """A fork into these, each of which has an undo unless told."""
    drawn = [task(node) if isinstance(node, str) else node for node in nodes]
    ids = [node["id"] for node in drawn]
    rest.setdefault("undo", ids)
    return saga([fork("f"), *drawn], [edge("f", id) for id in ids], **rest)


def undone(h: Harness) -> list[str]:
    """Whose undos were begun so far, in order."""
    tasks = [task for step in h.recorded() for task in of(step, CreateTask)]
    return [task.node.removesuffix(UNDO) for task in tasks if task.node.endswith(UNDO)]


def undo(h: Harness) -> Transition:
    """The undo under way does well."""
    return h.complete(under_way(h))


def undo_all(h: Harness) -> FinishRun:
    """All undos do well; how the run ended."""
    while h.run.status == "running":
        step = undo(h)
    return finish(step)


def under_way(h: Harness) -> str:
    """The one node that is being undone now, as its undo."""
    (node,) = [node for node, state in h.nodes.items() if state.status == "pending"]
    assert node.endswith(UNDO)
    return node


def give_up(h: Harness, node: str, *, begun: bool = True) -> Transition:
    """The node's attempt is not under way any more, without an outcome."""
    state = h.nodes[node]
    return h.apply(AttemptGivenUp(state.task, node, state.attempt, begun))


def deadline(h: Harness, seconds: int = 600) -> Transition:
    """The run's deadline comes, so long after its start."""
    h.now = max(h.now, NEW_YEAR + seconds * SECOND)
    return h.apply(DeadlineReached())


def drawn_plan(
    nodes: list[Member],
    edges: list[Member],
    *,
    undo: Iterable[str] | dict[str, PlannedUndo] = (),
    on_failure: str = "drain",
    gates: dict[str, Gate] | None = None,
    undo_on: Iterable[str] = ("failure", "timeout", "cancel"),
    **rest: Any,
) -> GraphPlan:
    """A plan whose nodes have these undos. Failures drain it, as they do a saga."""
    undos = undo if isinstance(undo, dict) else {node: PlannedUndo() for node in undo}
    if rest.get("all_entries"):
        # No document may say so: it is given an entry first.
        before = [fork("before"), *nodes]
        drawn = plan_of(before, [*(edge("before", n["id"]) for n in nodes), *edges])
        shape = GraphShape(
            {n["id"]: n["type"] for n in nodes}, [Edge(e["from"], e["to"]) for e in edges]
        )
        kept = {id: node for id, node in drawn.nodes.items() if id != "before"}
        plan = replace(drawn, nodes=kept, shape=shape, entry=None, on_failure=on_failure)
    else:
        plan = plan_of(nodes, edges, on_failure=on_failure)
    return undoable(plan, undos, undo_on=undo_on, gates=gates, **rest)
