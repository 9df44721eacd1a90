"""Effects: what a durable transition sets going. Never before it is durable.

Attempts start (or wait for their time), timers are armed and disarmed, the run's end is told to
whoever waits, observers see what was recorded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from perdure.engine.attempts.orders import NO_SECRETS
from perdure.engine.runs.children import ask_again
from perdure.engine.runs.halting import halt
from perdure.engine.runs.launches import Inputs, Launches, is_wanted
from perdure.engine.runs.timers import DEADLINE
from perdure.kernel.actions import (
    BeginRun,
    CancelTasks,
    CompleteTask,
    Continued,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    RequestStop,
    ResolveWait,
    RetryTask,
    SetPaused,
    StartChild,
    Transition,
)
from perdure.kernel.events import DeadlineReached, TimerFired
from perdure.kernel.onward import Decided, Onward
from perdure.model.graph import CHILD

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun


_log = logging.getLogger("perdure.engine")


class Effects:
    """Carries out the transitions of an engine's runs, each run's in order. `LiveRun.inputs` are
    the inputs of its tasks that may still be attempted."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder
        self.launches = Launches(holder)

    def carry_out(self, live: LiveRun, transitions: Sequence[Decided]) -> None:
        """Everything these durable transitions order. What goes wrong stalls the run."""
        observed = self.holder.observers
        try:
            for transition in transitions:
                if type(transition) is Onward:
                    stored = _go_onward(live, transition)
                    if is_wanted(live, transition.next, transition.next_task, 0):
                        self.launches.now(live, transition.next, transition.next_task, 0, stored)
                else:
                    self._carry_out(live, transition.actions)
                if observed:
                    self.holder.show(live, transition)
        except Exception as error:
            self.failed(live, error)

    def carry_onward(self, live: LiveRun, onward: Onward) -> None:
        """The same of one transition, where nothing has been decided since."""
        try:
            stored = _go_onward(live, onward)
            self.launches.now(live, onward.next, onward.next_task, 0, stored)
            if self.holder.observers:
                self.holder.show(live, onward)
        except Exception as error:
            self.failed(live, error)

    def carry_end(self, live: LiveRun, ended: Decided) -> None:
        """The same of one transition, the run's last. Most often a node has completed with it:
        its input and its timer go with the run."""
        try:
            actions: Sequence[Any] = ended.actions
            if len(actions) == 2 and type(actions[0]) is CompleteTask:
                self.holder.finished(live, actions[1])
            else:
                self._carry_out(live, actions)
            if self.holder.observers:
                self.holder.show(live, ended)
        except Exception as error:
            self.failed(live, error)

    def carry_start(self, live: LiveRun, started: Transition) -> None:
        """The same of a start that opens the run and begins at one worker node."""
        try:
            created: Any = started.actions[1]
            node = created.node
            live.inputs[node] = stored = Inputs(created.input, NO_SECRETS)
            self.launches.now(live, node, created.task, 0, stored)
            if self.holder.observers:
                self.holder.show(live, started)
        except Exception as error:
            self.failed(live, error)

    def failed(self, live: LiveRun, error: Exception) -> None:
        """What is durable could not be carried out: the run stalls with the reason."""
        _log.error("%s/%s cannot go on", live.definition.name, live.run_id, exc_info=error)
        live.stall(f"the engine could not carry out what was decided: {error!r}")

    def _carry_out(self, live: LiveRun, actions: Sequence[Any]) -> None:
        inputs = live.inputs
        for action in actions:
            kind = type(action)
            if kind is CompleteTask:
                stored = inputs.pop(action.node, None)
                if stored is not None and stored.timed:
                    live.timers.disarm(action.node)
            elif kind is CreateTask:
                if action.status == "pending":
                    secrets = action.secrets or NO_SECRETS  # as long as it waits it is kept
                    inputs[action.node] = Inputs(action.input, secrets)
                elif action.wake_at is not None:
                    self.wait(live, action.node, action.task, action.wake_at)
            elif kind is DispatchTask:
                self.launches.at(live, action.node, action.task, action.attempt, action.not_before)
            elif kind is FinishRun:
                self.holder.finished(live, action)
            elif (effect := _EFFECTS.get(kind)) is not None:
                effect(self, live, action)

    # ------------------------------------------------------------------ waits, ends

    def wait(self, live: LiveRun, node: str, task: str, due: int, late: int = 0) -> None:
        """See that a waiting node is told when its time has come, or so much later (µs)."""
        live.timers.arm(node, due + late, lambda: live.deliver(TimerFired(task, node, due)))

    def deadline(self, live: LiveRun) -> None:
        """See that the run is told when its deadline has come, if it has one."""
        if live.run.deadline is not None:
            call = partial(live.deliver, DeadlineReached())
            live.timers.arm(DEADLINE, live.run.deadline, call)

    def arm_again(self, live: LiveRun, event: Any) -> None:
        """A timer's event changed nothing. Where it is awaited still, it came early: the clock
        was set back between the timer and its turn. A run that is stopping awaits no deadline."""
        run = live.run
        if type(event) is TimerFired:
            state = run.nodes.get(event.node)
            due = None if state is None else state.not_before or state.wake_at
            if state is not None and (state.task, due) == (event.task, event.due):
                self.wait(live, event.node, event.task, event.due)
        elif type(event) is DeadlineReached and run.status == "running" and run.stopping is None:
            self.deadline(live)


def _go_onward(live: LiveRun, onward: Onward) -> Inputs:
    """The input of the task that is over goes, that of the one which follows comes."""
    inputs = live.inputs
    over = inputs.pop(onward.node, None)
    if over is not None and over.timed:
        live.timers.disarm(onward.node)
    inputs[onward.next] = stored = Inputs(onward.input, NO_SECRETS)
    return stored


def _over(effects: Effects, live: LiveRun, action: FailTask | ResolveWait) -> None:
    _forget(live, action.node)


def _forget(live: LiveRun, node: str) -> None:
    """The node ended otherwise than by an output: neither timer nor input is of use."""
    live.inputs.pop(node, None)
    live.timers.disarm(node)


def _asked(effects: Effects, live: LiveRun, action: StartChild) -> None:
    """What is asked of other runs went with the row; how long it is waited for is our own."""
    if action.wake_at is not None and (stored := live.inputs.get(action.node)) is not None:
        stored.timed = True
        effects.wait(live, action.node, action.task, action.wake_at)


def _retried(effects: Effects, live: LiveRun, action: RetryTask) -> None:
    if (how := live.machine.handlings.get(action.node)) is not None and how.type == CHILD:
        effects.wait(live, action.node, action.task, action.not_before)
        return
    effects.launches.at(live, action.node, action.task, action.attempt + 1, action.not_before)


def _cancelled(effects: Effects, live: LiveRun, action: CancelTasks) -> None:
    """These nodes' tasks are given up: attempts under way are asked to stop."""
    for node in action.nodes:
        _forget(live, node)
    live.work.stop(action.nodes)


def _paused(effects: Effects, live: LiveRun, action: SetPaused) -> None:
    live.work.held = action.paused or live.settling
    if not action.paused:
        live.work.start()
        ask_again(effects.holder, live, all=True)


def _continued(effects: Effects, live: LiveRun, action: Continued) -> None:
    live.timers.disarm(DEADLINE)
    effects.deadline(live)


def _begun(effects: Effects, live: LiveRun, action: BeginRun) -> None:
    if action.deadline is not None:
        effects.deadline(live)


def _halted(effects: Effects, live: LiveRun, action: RequestStop) -> None:
    """Code is told by its machine; of a graph with undos the attempts are."""
    if action.reason:
        halt(live)


#: What the rarer actions set going.
_EFFECTS: Final[Mapping[type, Callable[[Effects, LiveRun, Any], None]]] = {
    RetryTask: _retried,
    StartChild: _asked,
    BeginRun: _begun,
    RequestStop: _halted,
    Continued: _continued,
    FailTask: _over,
    ResolveWait: _over,
    CancelTasks: _cancelled,
    SetPaused: _paused,
}
