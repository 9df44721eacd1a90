"""SWITCH: decide once, record the decision, read only the record ever after.

Conditions may read the time or data that changes; a join an hour later must see the decision
that was made (G-60, G-61). Every true edge is chosen; an edge without a condition always is; the
`default: true` edge only when no conditional one was (D-7).
"""

from __future__ import annotations

from msgspec import Raw

from perdure.kernel.actions import CreateTask
from perdure.kernel.plan import PlannedNode
from perdure.kernel.run import NodeState
from perdure.kernel.turn import EMPTY, NeedLoad, Turn
from perdure.model.failure import FailureRecord


class BrokenCondition(Exception):
    """A condition that cannot be evaluated, with the edge it stands on."""


def activate_switch(turn: Turn, node: PlannedNode) -> None:
    """Complete the SWITCH with its choice, or record it failed when a condition is broken (D-5)."""
    turn.need(node.reads)
    output = passed_through(turn, node.id)
    try:
        branches = select(turn, node)
    except BrokenCondition as error:
        failure = FailureRecord("routing", str(error), permanent=True)
        turn.emit(CreateTask(turn.new_id(), node.id, "failed", failure=failure))
        return
    turn.emit(CreateTask(turn.new_id(), node.id, "completed", output=output, branches=branches))
    turn.remember(node.id, output)


def select(turn: Turn, node: PlannedNode) -> tuple[str, ...]:
    """The targets the conditions choose now, in document order. Raises BrokenCondition."""
    edges = turn.plan.choices[node.id]
    taken = []
    conditional_taken = False
    for edge in edges:
        if edge.default:
            continue
        if edge.condition is not None:
            try:
                true = edge.condition.evaluate(turn.scope(node.reads))
            except NeedLoad:
                raise
            except Exception as error:
                raise BrokenCondition(
                    f"switch {node.id}: the condition of edge {node.id} -> {edge.target} "
                    f"cannot be evaluated: {error}"
                ) from error
            if not true:
                continue
            conditional_taken = True
        taken.append(edge.target)
    if not conditional_taken:
        taken += [edge.target for edge in edges if edge.default]
    order = {edge.target: place for place, edge in enumerate(edges)}
    return tuple(sorted(taken, key=order.__getitem__))


def chosen(turn: Turn, node: str, state: NodeState) -> tuple[str, ...]:
    """What a completed SWITCH chose: the record. Runs recorded without one are asked again, and
    an error then counts as no branch (G-62)."""
    if state.branches is not None:
        return state.branches
    try:
        return select(turn, turn.plan.nodes[node])
    except BrokenCondition:
        return ()


def passed_through(turn: Turn, node: str) -> Raw:
    """The output of the first predecessor that leads here, or `{}` (G-58)."""
    for edge in turn.plan.shape.incoming[node]:
        state = turn.run.nodes.get(edge.source)
        if state is None or state.status != "completed":
            continue
        if edge.source in turn.plan.choices and node not in chosen(turn, edge.source, state):
            continue
        turn.need((edge.source,))
        return turn.outputs[edge.source]
    return EMPTY
