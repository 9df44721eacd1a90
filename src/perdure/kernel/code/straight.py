"""The straight way: what most decisions for code are, made in place.

A step completed, and the code that awaits it runs on. It comes to what the handlers of `happened`
decide, action for action; but all that can keep the report from counting is looked at first, and
the task that waits is resumed at once instead of by way of the loop's callbacks. Whatever is out
of the ordinary is left to the general way, by returning None: then nothing is changed.
"""

from __future__ import annotations

from typing import Any

from perdure.kernel.actions import AnyAction, CompleteTask, Transition
from perdure.kernel.code.calls import NONE
from perdure.kernel.code.loop import HotLoop
from perdure.kernel.code.running import Running
from perdure.kernel.code.turns import AT_REST
from perdure.kernel.events import NodeCompleted
from perdure.kernel.run import NodeState


def straight_on(machine: Running, event: NodeCompleted) -> Transition | None:
    """The decision, where nothing is in its way: the report is the awaited one's, one task awaits
    it, and no kept signal may have to be loaded. Raises what `run_on` raises."""
    run, calls, node = machine.run, machine.calls, event.node
    nodes, task, attempt = run.nodes, event.task, event.attempt
    state = nodes.get(node)
    call: Any = calls.open.get(node)  # of a pending task it is no timer
    if (
        state is None
        or call is None
        or state.task != task
        or state.attempt != attempt
        or state.status != "pending"
        or run.signals
        or calls.stuck is not None
    ):
        return None
    future: Any = call.future
    try:
        ((resume, context),) = future._callbacks
    except (TypeError, ValueError):  # nobody awaits it yet, or several do
        return None
    root: Any = machine.root  # it has begun
    loop, before = calls.loop, run.at
    loop.now = machine.now = run.at = now = max(machine.deps.now(), before)
    run.active -= 1
    run.completed = number = run.completed + 1
    nodes[node] = NodeState(task, "completed", attempt, None, number)
    actions: list[AnyAction] = [CompleteTask(task, node, attempt, event.output)]
    calls.actions = actions
    del calls.open[node]
    call.future = None  # they refer to one another
    future.remove_done_callback(resume)
    future.set_result(event.output)
    try:
        try:
            loop.run_ready(context, resume, future)
        except (HotLoop, SystemExit, KeyboardInterrupt) as error:
            machine.broken_off(error)
        if calls.new_timers or not loop.alive:
            machine.turn_over()
        if not calls.open or root.done():
            machine.rest()
    except BaseException:
        run.at = before
        raise
    finally:
        calls = machine.calls  # others, where the code began anew
        calls.actions, calls.loop.turn = NONE, AT_REST
    run.crashes = 0
    return Transition(now, actions)
