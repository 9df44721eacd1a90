"""The straight way: a step completed, and the one worker node that follows it begins.

Most decisions are this one. It comes to what `machine.on_node_completed` decides, action for
action, but all that can go wrong comes before anything is changed: so nothing is kept for a
rollback, and what `fold` would do is done in place. Whatever is out of the ordinary is left to the
general way, by returning None.
"""

from __future__ import annotations

from perdure.kernel.actions import CompleteTask, CreateTask, DispatchTask, Transition
from perdure.kernel.events import NodeCompleted
from perdure.kernel.plan import PlannedNode
from perdure.kernel.run import NodeState
from perdure.kernel.tasks import resolved
from perdure.kernel.turn import Turn


def straight_on(turn: Turn, event: NodeCompleted, then: PlannedNode, now: int) -> Transition | None:
    """The decision, where nothing is in its way: the run goes forward, nothing has failed, the
    report is the awaited one's and `then` was not reached."""
    run, node, task, output = turn.run, event.node, event.task, event.output
    nodes, follower, attempt = run.nodes, then.id, event.attempt
    before = nodes.get(node)
    if (
        before is None
        or before.task != task
        or before.status != "pending"
        or before.attempt != attempt
        or event.metadata is not None
        or run.status != "running"
        or run.failures
        or follower in nodes
        or turn.drawn
    ):
        return None
    if turn.kept is None or node in turn.kept:
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
    nodes[node] = NodeState(task, "completed", attempt, None, number)
    nodes[follower] = NodeState(next_task, "pending", 0, None, 0, now)
    run.at, run.crashes = now, 0
    return Transition(
        now,
        [
            CompleteTask(task, node, attempt, output),
            CreateTask(next_task, follower, "pending", input),
            DispatchTask(next_task, follower, 0, 0, then.queue),
        ],
    )
