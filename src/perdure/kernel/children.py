"""CHILD nodes: another run is asked for, and its end is the node's.

The run that is asked for is there already or is made for the node, which the store decides once;
only a run that was made for it ends with it. A further attempt asks for a run of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Raw

from perdure.kernel.actions import CancelChild, CreateTask, StartChild
from perdure.kernel.child_ids import derived_id
from perdure.kernel.plan import PlannedNode
from perdure.kernel.run import NodeState
from perdure.kernel.tasks import or_failed
from perdure.kernel.turn import Turn
from perdure.model.errors import InvalidRequest
from perdure.model.guesses import did_you_mean
from perdure.model.names import check_name, check_run_id

CHILD_KEYS: Final = ("workflow", "id", "input")


def ask(turn: Turn, node: PlannedNode) -> None:
    """Create the node's task and ask for its run; a node whose spec cannot be resolved, or names
    no run that can be, is recorded failed with the reason, never retried (G-68)."""
    asked = or_failed(turn, node, _asked)
    if asked is None:
        return
    definition, id, input = asked
    task = turn.new_id()
    turn.emit(CreateTask(task, node.id, "pending", input))
    turn.emit(StartChild(task, node.id, definition, id, wake_at=until(turn, node)))


def _asked(turn: Turn, node: PlannedNode) -> tuple[str, str, Raw | None]:
    """The run that the resolved spec asks for (definition, id), and its input if it gets one."""
    run, write = turn.run, turn.deps.codec.write
    spec = node.spec.render({} if node.constant else turn.scope(node.reads))
    if not isinstance(spec, dict):
        raise InvalidRequest('a CHILD needs an object, as in {"workflow": "payment"}')
    for key in spec:
        if key not in CHILD_KEYS:
            hint = did_you_mean(str(key), CHILD_KEYS)
            raise InvalidRequest(f'there is no key "{key}" in the spec of a CHILD; {hint}')
    definition = check_name(spec.get("workflow"), "workflow")
    id: Any = spec.get("id")
    if type(id) is int:
        id = str(id)
    if "id" not in spec:
        id = derived_id(run.definition, run.id, node.id)
    elif check_run_id(id) == run.id:
        raise InvalidRequest(f"run {id!r} cannot be its own child: give the child another id")
    input = spec.get("input")
    return definition, id, None if input is None else Raw(write(input))


def until(turn: Turn, node: PlannedNode) -> int | None:
    """When a run that is asked for now is waited for no more; None = never."""
    return turn.now + node.timeout if node.timeout else None


# ---------------------------------------------------------------------- ends that others order


def let_go(turn: Turn, nodes: Iterable[str]) -> None:
    """These nodes are about to end: those that wait for a run do so no more."""
    for node in nodes:
        state = turn.run.nodes[node]
        if state.child is not None and not state.not_before:
            turn.emit(cancel_of(node, state))


def drained(turn: Turn) -> list[str]:
    """Ask the runs that were made for this one to end, which is waited for. The nodes that wait
    for others' runs, which are let go at once."""
    idle = []
    for node, state in turn.run.nodes.items():
        child = state.child
        if child is None or state.not_before or child.stopping:
            continue
        if child.created:
            turn.emit(cancel_of(node, state, awaited=True))
        elif child.created is False or turn.run.paused:
            idle.append(node)  # paused: it may be that nobody was asked yet
    return idle


def cancel_of(node: str, state: NodeState, **awaited: Any) -> CancelChild:
    """The action by which a node's run is waited for no more."""
    child = state.child
    assert child is not None
    return CancelChild(state.task, node, child.definition, child.id, state.attempt, **awaited)
