"""Worker nodes: their input is resolved once, stored, and dispatched; reports are fenced.

A worker sees plain JSON, never a template (G-66).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from msgspec import Raw

from perdure.kernel.actions import CompleteTask, CreateTask, DispatchTask, FailTask
from perdure.kernel.events import AttemptGivenUp, NodeCompleted, NodeFailed
from perdure.kernel.plan import PlannedNode
from perdure.kernel.run import Run
from perdure.kernel.turn import NeedLoad, Turn
from perdure.model.errors import StoreError
from perdure.model.failure import FailureRecord

T = TypeVar("T")


class HasRun(Protocol):
    """Whoever decides on a run's snapshot."""

    run: Run


def schedule(turn: Turn, node: PlannedNode) -> None:
    """Create the node's task and dispatch it."""
    id = node.id
    input = turn.plan.constants.get(id)
    if input is None:
        input = or_failed(turn, node, resolved)
        if input is None:
            return
    task = turn.new_id()
    if node.secrets is not None:
        turn.emit(CreateTask(task, id, "pending", input, secrets=dict(node.secrets)))
    else:
        turn.emit(CreateTask(task, id, "pending", input))
    turn.actions.append(DispatchTask(task, id, 0, 0, node.queue))


def or_failed(turn: Turn, node: PlannedNode, resolve: Callable[[Turn, PlannedNode], T]) -> T | None:
    """What a node's spec comes to; where it cannot be resolved, None, and the node is recorded
    failed with the reason, never dispatched nor retried (G-68)."""
    try:
        return resolve(turn, node)
    except (NeedLoad, StoreError):
        raise
    except Exception as error:
        message = f"the input of node {node.id} cannot be resolved: {error}"
        failure = FailureRecord("input", message, permanent=True)
        turn.emit(CreateTask(turn.new_id(), node.id, "failed", failure=failure))
        return None


def resolved(turn: Turn, node: PlannedNode) -> Raw:
    """The node's spec with its templates evaluated, as JSON text. Raises what evaluation raises."""
    write = turn.deps.codec.write
    if not node.constant:
        return Raw(write(node.spec.render(turn.scope(node.reads))))
    turn.plan.constants[node.id] = input = Raw(write(node.spec.render({})))
    return input


def stale(turn: HasRun, event: NodeCompleted | NodeFailed | AttemptGivenUp) -> str | None:
    """Why a report does not count, or None when it does (G-23, G-35)."""
    state = turn.run.nodes.get(event.node)
    if state is None:
        return f"node {event.node} was not reached"
    if state.task != event.task:
        return f"node {event.node} has another task now: the report is stale"
    if state.attempt != event.attempt:
        return (
            f"node {event.node} is at attempt {state.attempt + 1}: the report of attempt "
            f"{event.attempt + 1} is stale"
        )
    if state.status == "waiting":
        return f"node {event.node} waits, and takes no report"
    if state.status != "pending":
        return f"node {event.node} is already {state.status}: the report is a duplicate"
    return None


def complete(turn: Turn, event: NodeCompleted) -> None:
    """Record the output of the attempt. A node that the definition no longer has leads nowhere:
    it is recorded failed, and the finish rule says so (D-5, G-96)."""
    node = event.node
    if node not in turn.plan.nodes:
        message = f"node {node} is not in version {turn.plan.version} of the definition"
        failure = FailureRecord("routing", message, permanent=True)
        turn.emit(FailTask(event.task, node, event.attempt, failure, turn.plan.undoes))
        return
    turn.emit(CompleteTask(event.task, node, event.attempt, event.output, None, event.metadata))
    turn.remember(node, event.output)
