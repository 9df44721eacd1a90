"""Effects: what a durable transition sets going. Never before it is durable.

Attempts start (or wait for their time), timers are armed and disarmed, the run's end is told to
whoever waits, observers see what was recorded.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Raw

from perdure.engine.dispatcher import Order
from perdure.engine.timers import DEADLINE
from perdure.kernel.actions import (
    CancelTasks,
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    ResolveWait,
    RetryTask,
    SetPaused,
    Transition,
)
from perdure.kernel.events import DeadlineReached, TimerFired
from perdure.model.errors import PayloadMissing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perdure.engine.live_run import LiveRun
    from perdure.engine.shell import Shell


class Inputs(msgspec.Struct, gc=False):
    """A task's stored input: where it stands, and which of its strings are secrets' templates."""

    place: Raw | tuple[int, int]
    secrets: Mapping[str, str]


class Effects:
    """Carries out one run's transitions, in order."""

    __slots__ = ("_live", "_shell", "inputs")

    def __init__(self, live: LiveRun, shell: Shell) -> None:
        self._live = live
        self._shell = shell
        #: Inputs of tasks that may still be attempted.
        self.inputs: dict[str, Inputs] = {}

    def carry_out(self, transitions: Sequence[Transition]) -> None:
        """Everything these durable transitions order."""
        for transition in transitions:
            for action in transition.actions:
                kind = type(action)
                if kind is CreateTask:
                    if action.status == "pending":
                        self.inputs[action.node] = Inputs(action.input, action.secrets)
                    elif action.wake_at is not None:
                        self.wait(action.node, action.task, action.wake_at)
                elif kind is DispatchTask:
                    self.dispatch(action.node, action.task, action.attempt, action.not_before)
                elif kind is CompleteTask:
                    self.inputs.pop(action.node, None)
                elif kind is RetryTask:
                    number = action.attempt + 1
                    self.dispatch(action.node, action.task, number, action.not_before)
                elif kind is FinishRun:
                    self._shell.finished(self._live, action)
                elif kind is FailTask or kind is ResolveWait:
                    self._over(action.node)
                elif kind is CancelTasks:
                    self._cancel(action.nodes)
                elif kind is SetPaused:
                    self._pause(action.paused)
            if self._shell.observers:
                self._shell.show(self._live, transition)

    # ------------------------------------------------------------------ attempts

    def dispatch(self, node: str, task: str, number: int, not_before: int) -> None:
        """Start an attempt, or see that it starts at its time."""
        live = self._live
        if not_before and not_before > self._shell.clock.now():
            live.timers.arm(node, not_before, partial(self._due, node, task, number))
            return
        stored = self.inputs[node]
        if isinstance(stored.place, tuple):
            live.fetching += 1
            self._shell.spawn(self._fetch_input(node, task, number, stored))
            return
        self._order(node, task, number, stored)

    def _due(self, node: str, task: str, number: int) -> None:
        self.dispatch(node, task, number, 0)
        self._live.work.start()

    async def _fetch_input(self, node: str, task: str, number: int, stored: Inputs) -> None:
        live = self._live
        assert isinstance(stored.place, tuple)
        try:
            stored.place = Raw(await self._shell.read(live.key, stored.place))
        except PayloadMissing as error:
            live.stall(f"the input of node {node} is gone: {error}")
            return
        finally:
            live.fetching -= 1
        # Meanwhile the run may have gone, or nobody may want the attempt any more.
        if not live.dead and self.inputs.get(node) is stored:
            self._order(node, task, number, stored)
            live.work.start()

    def _order(self, node: str, task: str, number: int, stored: Inputs) -> None:
        live = self._live
        handling = live.machine.handling(node)
        order = Order(
            node, handling.type, task, number, cast("Raw", stored.place), stored.secrets,
            handling.timeout, live.definition.name, live.run_id,
        )  # fmt: skip
        live.work.orders.append(order)

    # ------------------------------------------------------------------ waits, pauses, ends

    def wait(self, node: str, task: str, due: int) -> None:
        """See that a waiting node is told when its time has come."""
        live = self._live
        live.timers.arm(node, due, lambda: live.deliver(TimerFired(task, node, due)))

    def deadline(self) -> None:
        """See that the run is told when its deadline has come, if it has one."""
        live = self._live
        if live.run.deadline is not None:
            call = partial(live.deliver, DeadlineReached())
            live.timers.arm(DEADLINE, live.run.deadline, call)

    def arm_again(self, event: Any) -> None:
        """A timer's event changed nothing. Where it is awaited still, it came early: the clock
        was set back between the timer and its turn."""
        run = self._live.run
        if type(event) is TimerFired:
            state = run.nodes.get(event.node)
            if state is not None and (state.task, state.wake_at) == (event.task, event.due):
                self.wait(event.node, event.task, event.due)
        elif type(event) is DeadlineReached and run.status == "running":
            self.deadline()

    def _over(self, node: str) -> None:
        """The node ended otherwise than by an output: neither timer nor input is of use."""
        self.inputs.pop(node, None)
        self._live.timers.disarm(node)

    def _cancel(self, nodes: Collection[str]) -> None:
        """These nodes' tasks are given up: attempts under way are asked to stop."""
        for node in nodes:
            self._over(node)
        self._live.work.stop(nodes)

    def _pause(self, paused: bool) -> None:
        live = self._live
        live.work.held = paused or live.settling
        if not paused:
            live.work.start()
