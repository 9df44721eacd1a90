"""Where a run begins: its start, and its restart after it ended.

Nodes begun here are activated whatever their incoming edges say (G-56, G-93). What cannot begin
is refused to whoever asked, and nothing is recorded (G-98).
"""

from __future__ import annotations

from collections.abc import Iterable

from perdure.kernel.actions import CreateTask, ReopenRun
from perdure.kernel.events import RunRetried, RunStarted
from perdure.kernel.opening import opening
from perdure.kernel.plan import undo_of
from perdure.kernel.routing import activate, propagate
from perdure.kernel.run import Run
from perdure.kernel.turn import Turn
from perdure.model.errors import InvalidRequest, RunActive
from perdure.model.guesses import did_you_mean


def on_run_started(turn: Turn, event: RunStarted) -> None:
    """Open the run and begin at its start node. Raises InvalidRequest."""
    plan, run = turn.plan, turn.run
    if run.nodes or run.status != "new":
        raise InvalidRequest("the run has already started")
    start = event.start_node or plan.entry
    if start is None and not plan.all_entries:
        roots = ", ".join(plan.shape.entries)
        raise InvalidRequest(
            f"graph {plan.name} has several nodes without incoming edges ({roots}): "
            "name one as `entry` in the document or as start_node"
        )
    if event.start_node is not None and plan.typed:
        raise InvalidRequest(
            "start_node is for graphs: a saga begins at its first steps, or what it did before "
            "would not be undone"
        )
    if start is not None and start not in plan.nodes:
        meant = did_you_mean(start, list(plan.nodes))
        raise InvalidRequest(f"start node {start} is not in graph {plan.name}; {meant}")
    turn.emit_for_run(opening(plan, event))
    if start is None:
        _begin_entries(turn)
    elif after := activate(turn, start):
        propagate(turn, after)
    _refuse_routing_errors(turn)


def _begin_entries(turn: Turn) -> None:
    """Begin every node without incoming edges, until one ends the run."""
    for node in turn.plan.shape.entries:
        if node not in turn.run.nodes and not turn.gives_up:
            propagate(turn, activate(turn, node))


def on_run_retried(turn: Turn, event: RunRetried) -> None:
    """Reopen the run and begin again at a node, or at every node that failed (D-8); in both cases
    also at every node whose work was undone.

    Those and all behind them are reset; the rest stays, recorded choices included (G-91). Raises
    RunActive while anything is active, InvalidRequest for a node that is not there, and where no
    node is named and one would be done again whose undo failed.
    """
    run, plan = turn.run, turn.plan
    if run.status == "new":
        raise InvalidRequest("the run has not started yet")
    if run.active or run.status == "running":
        raise RunActive(f"the run still has {run.active} active task(s): cancel it first")
    again = _restarts(turn, event.node)
    behind = plan.shape.behind(again)
    if event.node is None:
        _refuse_doing_twice(run, behind)
    gone = [node for node in run.nodes if node not in plan.nodes]
    turn.emit_reopen(
        ReopenRun(
            plan.version,
            plan.hash,
            tuple(dict.fromkeys([*again, *behind, *gone])),
            input=event.input,
            config=event.config,
            deadline=event.deadline,
        )
    )
    after = frozenset(behind)
    for node in again:
        # One that stands behind another is reached from there, if at all.
        if node not in after and node not in run.nodes and not turn.gives_up:
            propagate(turn, activate(turn, node))
    if plan.all_entries:
        _begin_entries(turn)
    # What was ready and never begun, since the run was given up or the version is a new one.
    propagate(turn, [node for node, edges in plan.shape.incoming.items() if edges])
    _refuse_routing_errors(turn)


def _restarts(turn: Turn, node: str | None) -> list[str]:
    """The nodes to begin at, in the document's order. Raises InvalidRequest."""
    plan, reached = turn.plan, turn.run.nodes
    if node is not None and node not in plan.nodes:
        hint = did_you_mean(node, list(plan.nodes))
        raise InvalidRequest(
            f"node {node} is not in version {plan.version} of graph {plan.name}"
            f"{'; ' if hint else ''}{hint}"
        )
    wanted = ("failed", "canceled", "compensated") if node is None else ("compensated",)
    again = [
        other
        for other in plan.nodes
        if other == node or (other in reached and reached[other].status in wanted)
    ]
    if not again and turn.run.stopping is None:  # one that was stopped may lack nodes all the same
        raise InvalidRequest(
            f"no node of version {plan.version} of graph {plan.name} has failed in this run: "
            "name the node to begin at, with from_node or --from NODE"
        )
    return again


def _refuse_doing_twice(run: Run, nodes: Iterable[str]) -> None:
    """What could not be undone is done still: somebody must look before it is done again."""
    for node in nodes:
        state, undo = run.nodes.get(node), run.nodes.get(undo_of(node))
        if state is not None and state.status == "completed" and undo is not None:
            raise InvalidRequest(
                f"what node {node} did could not be undone, and would be done again: see to it, "
                "then name the node to begin at, with from_node or --from NODE"
            )


def _refuse_routing_errors(turn: Turn) -> None:
    """A routing error while starting rejects the start (D-5), nothing is recorded."""
    for action in turn.actions:
        failure = action.failure if isinstance(action, CreateTask) else None
        if failure is not None and failure.kind == "routing":
            raise InvalidRequest(failure.message)
