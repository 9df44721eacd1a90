"""The straight way: what most decisions are, made in place.

A run starts with one worker node; a step completed, and the one worker node that follows it begins;
the last step completed, and the run ends well. Each comes to what the handlers of `machine` decide,
action for action (the second as one record), but all that can go wrong comes before anything is
changed, or is taken back at once: so nothing is kept for a rollback. Whatever is out of the
ordinary is left to the general way, by returning None.
"""

from __future__ import annotations

from msgspec import Raw

from perdure.kernel.actions import (
    AnyAction,
    CompleteTask,
    CreateTask,
    DispatchTask,
    FinishRun,
    Transition,
)
from perdure.kernel.events import NodeCompleted, RunStarted
from perdure.kernel.finish import blocked, output_of
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.opening import opened_run, opening
from perdure.kernel.plan import GraphPlan, PlannedNode
from perdure.kernel.protocol import Deps
from perdure.kernel.run import NodeState, Run
from perdure.kernel.tasks import resolved
from perdure.kernel.turn import Turn


def straight_start(
    plan: GraphPlan, event: RunStarted, deps: Deps, now: int
) -> tuple[Run, Transition] | None:
    """A new run's snapshot once it has started, and the start, where it begins at one worker node
    and nothing is to be evaluated for that."""
    first = plan.opening
    input = None if first is None else plan.constants.get(first.id)
    if first is None or input is None or event.start_node is not None:
        return None
    node, task = first.id, deps.new_id()
    opened = opening(plan, event)
    run = opened_run(opened, now)
    run.nodes[node] = NodeState(task, "pending", 0, None, 0, now)
    run.active = 1
    actions: list[AnyAction] = [
        opened,
        CreateTask(task, node, "pending", input),
        DispatchTask(task, node, 0, 0, first.queue),
    ]
    return run, Transition(now, actions)


def straight_on(
    turn: Turn, event: NodeCompleted, then: PlannedNode | None, now: int
) -> Decided | None:
    """The decision, where nothing is in its way: the run goes forward, nothing has failed, and the
    report is the awaited one's. `then`: the node that begins; None: the run ends."""
    run, node, attempt = turn.run, event.node, event.attempt
    nodes = run.nodes
    before = nodes.get(node)
    if (
        before is None
        or before.task != event.task
        or before.status != "pending"
        or before.attempt != attempt
        or event.metadata is not None
        or run.status != "running"
        or run.failures
        or turn.drawn
    ):
        return None
    if then is None:
        return _straight_end(turn, event, before, now) if run.active == 1 else None
    follower = then.id
    if follower in nodes:
        return None
    output, kept = event.output, turn.kept
    if kept is None or node in kept:
        turn.outputs[node] = output
    turn.now = now
    try:
        input = turn.plan.constants.get(follower)
        if input is None:
            input = resolved(turn, then)
        next_task = turn.deps.new_id()
    except Exception:  # the general way meets it again: it records, loads or raises
        turn.outputs.pop(node, None)
        turn.views.pop(node, None)
        return None
    run.completed = number = run.completed + 1
    nodes[node] = NodeState(before.task, "completed", attempt, None, number)
    nodes[follower] = NodeState(next_task, "pending", 0, None, 0, now)
    run.at = now
    run.crashes = 0
    return Onward(now, before.task, node, next_task, follower, output, input, attempt, then.queue)


def _straight_end(
    turn: Turn, event: NodeCompleted, before: NodeState, now: int
) -> Transition | None:
    """The run ends well with a node that nothing follows, where nothing else is active."""
    run, node, output = turn.run, event.node, event.output
    nodes, number, before_then = run.nodes, run.completed + 1, run.at
    nodes[node] = NodeState(before.task, "completed", before.attempt, None, number)
    if turn.kept is None or node in turn.kept:
        turn.outputs[node] = output
    turn.now = run.at = now
    result = None
    try:
        if blocked(turn) is None:
            result = Raw(output_of(turn))
    except Exception:
        return None  # the general way says it: it loads, fails or raises
    finally:
        if result is None:
            nodes[node], run.at = before, before_then
            turn.outputs.pop(node, None)
            turn.views.pop(node, None)
    if result is None:
        return None
    run.active, run.completed, run.crashes, run.status = 0, number, 0, "completed"
    return Transition(
        now,
        [
            CompleteTask(event.task, node, event.attempt, output),
            FinishRun("completed", output=result),
        ],
    )
