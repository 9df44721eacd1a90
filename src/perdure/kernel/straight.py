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
    run, node, follower = turn.run, event.node, then.id
    nodes = run.nodes
    before = nodes.get(node)
    if (
        before is None
        or before.status != "pending"
        or before.task != event.task
        or before.attempt != event.attempt
        or event.metadata is not None
        or then.secrets is not None
        or run.status != "running"
        or run.failures
        or follower in nodes
        or turn.drawn
    ):
        return None
    turn.remember(node, event.output)
    turn.now = now
    try:
        input = turn.plan.constants.get(follower)
        if input is None:
            input = resolved(turn, then)
        task = turn.deps.new_id()
    except Exception:  # the general way meets it again: it records, loads or raises
        turn.outputs.pop(node, None)
        turn.views.pop(node, None)
        return None
    run.completed = number = run.completed + 1
    nodes[node] = NodeState(before.task, "completed", before.attempt, None, number)
    nodes[follower] = NodeState(task, "pending", 0, None, 0, now)
    run.at, run.crashes = now, 0
    return Transition(
        now,
        [
            CompleteTask(event.task, node, event.attempt, event.output),
            CreateTask(task, follower, "pending", input),
            DispatchTask(task, follower, 0, 0, then.queue),
        ],
    )
