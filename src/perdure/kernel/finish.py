"""Finishing: a run ends only when nothing is active, on every path (G-45, G-46).

A run that ends otherwise than well undoes first what it did, where its definition says how. Failed
if any node failed; else failed "blocked" if an unreached node has an active incoming edge
(D-6); else completed, with the document's output or the outputs of the leaves that completed.
"""

from __future__ import annotations

from msgspec import Raw

from perdure.kernel.actions import FinishRun
from perdure.kernel.compensation import begin_undoing, end, told, undo_next
from perdure.kernel.routing import edge_is_active
from perdure.kernel.run import COMPENSATING
from perdure.kernel.turn import NeedLoad, Turn
from perdure.model.errors import StoreError
from perdure.model.failure import FailureRecord


def finish(turn: Turn) -> None:
    """Nothing is active: emit FinishRun, unless the run has ended already."""
    if turn.run.status != "running":
        return
    if turn.run.stopping is not None:
        _finish_stopped(turn)
        return
    failure = failed_nodes(turn) or blocked(turn)
    if failure is not None:
        _fail(turn, failure)
        return
    try:
        output = Raw(output_of(turn))
    except (NeedLoad, StoreError):
        raise
    except Exception as error:
        failure = FailureRecord("output", f"the run's output cannot be made: {error}")
        _fail(turn, failure)
        return
    turn.emit_for_run(FinishRun("completed", output=output))


def _fail(turn: Turn, failure: FailureRecord) -> None:
    if not begin_undoing(turn, "failure", failure):
        turn.emit_for_run(FinishRun("failed", failure=told(turn, failure, "failure")))


def _finish_stopped(turn: Turn) -> None:
    """The run has come to rest, or an undo has ended: undo what is left, then end."""
    run = turn.run
    if run.phase == COMPENSATING:
        undo_next(turn)
        return
    failure = run.stopping
    if run.reason == "failure":
        failure = failed_nodes(turn) or failure
    assert failure is not None
    if not begin_undoing(turn, run.reason, failure):
        end(turn, failure)


def failed_nodes(turn: Turn) -> FailureRecord | None:
    """The run's failure when nodes failed: their count, and the first one's kind and message."""
    failures = turn.run.failures
    if not failures:
        return None
    node, failure = failures[0]
    more = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
    message = f"node {node} failed: {failure.message}{more}"
    state = turn.run.nodes.get(node)
    details = {
        "node": node,
        "attempt": 0 if state is None else state.attempt + 1,
        "failed": len(failures),
        "details": failure.details,
    }
    return FailureRecord(failure.kind, message, failure.permanent, details=details)


def blocked(turn: Turn) -> FailureRecord | None:
    """The failure of a run that waits for what can never come, or that lacks a node given up
    when another failed: retrying that other one does not bring it back."""
    run = turn.run
    reached = run.nodes
    if run.gave_up and (
        given_up := [node for node, state in reached.items() if state.status == "canceled"]
    ):
        message = f"blocked: {', '.join(given_up)} was canceled and not retried"
        return FailureRecord("workflow.blocked", message)
    all_incoming = turn.plan.shape.incoming
    if reached.keys() == all_incoming.keys():
        return None
    for node, incoming in all_incoming.items():
        if node in reached:
            continue
        edges = [(edge.source, edge_is_active(turn, edge)) for edge in incoming]
        if any(active for _, active in edges):
            missing = ", ".join(source for source, active in edges if active is None)
            return FailureRecord("workflow.blocked", f"blocked: {node} waits for {missing}")
    return None


def output_of(turn: Turn) -> bytes:
    """The run's output as JSON text."""
    plan = turn.plan
    if plan.output is not None:
        return turn.deps.codec.write(plan.output.render(turn.scope(plan.output_reads)))
    codec, outputs = turn.deps.codec, turn.outputs
    try:  # what is in memory is of nodes that completed
        given = {node: outputs[node] for node in plan.leaves}
    except KeyError:
        nodes = turn.run.nodes
        leaves = [
            node
            for node in plan.leaves
            if (state := nodes.get(node)) is not None and state.status == "completed"
        ]
        turn.need(leaves)
        given = {node: outputs[node] for node in leaves}
    if codec.plain or not plan.typed:
        return codec.write(given)
    opened = {node: codec.opened(output) for node, output in given.items()}
    return bytes(codec.sealed(Raw(codec.write(opened))))
