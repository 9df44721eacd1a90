"""Routing: the one readiness rule and the walk that follows it.

A node is ready once every incoming edge is resolved. An edge is *active* when its source
completed and, for a SWITCH, chose this target, or was skipped by its own gate; *inactive* when its
source was skipped otherwise or the SWITCH chose otherwise; *unresolved* in every other case, a
failed source included. Ready with an active edge: it runs. Ready with none: it is skipped, and the
skip goes on downstream. Fork and join, diamonds and re-convergence follow from this; JOIN has no
code of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.kernel.actions import CreateTask
from perdure.kernel.children import ask
from perdure.kernel.gates import opens
from perdure.kernel.switch import activate_switch, chosen
from perdure.kernel.tasks import schedule
from perdure.kernel.turn import EMPTY, Turn
from perdure.kernel.waits import park
from perdure.model.graph import CHILD, WAIT_TYPES, Edge


def edge_is_active(turn: Turn, edge: Edge) -> bool | None:
    """True active, False inactive, None unresolved."""
    state = turn.run.nodes.get(edge.source)
    if state is None:
        return None
    if state.status == "completed":
        if edge.source in turn.plan.choices:
            return edge.target in chosen(turn, edge.source, state)
        return True
    if state.status == "skipped":
        return state.branches is not None
    return None


def readiness(turn: Turn, node: str) -> bool | None:
    """True: run it. False: skip it. None: some incoming edge is unresolved."""
    any_active = False
    # Branches tend to end in the order they began: from the back, a join of a thousand finds the
    # one that is not done yet at once.
    for edge in reversed(turn.plan.shape.incoming[node]):
        active = edge_is_active(turn, edge)
        if active is None:
            return None
        any_active = any_active or active
    return any_active


def propagate(turn: Turn, candidates: Iterable[str]) -> None:
    """Walk forward breadth-first, running or skipping every node that has become ready.

    Nodes already reached are passed over (one task per node); waiting ones are left for a later
    event; worker nodes and real waits stop the walk; control nodes and waits that are over resolve
    inline and pass it on. Nothing begins once the run is given up.
    """
    queue = list(candidates)
    run = turn.run
    reached = run.nodes
    for node in queue:  # grows while it is walked
        if node in reached:
            continue
        if (run.failures or run.stopping is not None) and turn.gives_up:
            return
        ready = readiness(turn, node)
        if ready is None:
            continue
        if ready:
            queue.extend(activate(turn, node))
        else:
            turn.emit(CreateTask(turn.new_id(), node, "skipped"))
            queue.extend(turn.plan.shape.successors[node])


def activate(turn: Turn, node: str) -> tuple[str, ...]:
    """Start a ready node; gives the nodes to look at next, none where the walk stops."""
    planned = turn.plan.nodes[node]
    kind = planned.type
    if kind in ("FORK", "JOIN"):
        turn.emit(CreateTask(turn.new_id(), node, "completed", output=EMPTY))
        turn.remember(node, EMPTY)
    elif kind == "SWITCH":
        activate_switch(turn, planned)
    elif kind in WAIT_TYPES:
        park(turn, planned)
    elif kind == CHILD:
        ask(turn, planned)
        return ()
    elif planned.gate is not None and not opens(turn, planned):
        return turn.plan.shape.successors[node] if turn.run.nodes[node].branches is not None else ()
    else:
        schedule(turn, planned)
        return ()
    status = turn.run.nodes[node].status
    return turn.plan.shape.successors[node] if status == "completed" else ()
