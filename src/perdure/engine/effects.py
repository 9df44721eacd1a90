"""Effects: what a durable transition sets going. Never before it is durable.

Attempts start (or wait for their time), the run's end is told to whoever waits, observers see
what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from perdure.engine.dispatcher import Order
from perdure.kernel.actions import (
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    RetryTask,
    Transition,
)

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
                    if action.input is not None:
                        self.inputs[action.node] = Inputs(action.input, action.secrets)
                elif kind is DispatchTask:
                    self.dispatch(action.node, action.task, action.attempt, action.not_before)
                elif kind is RetryTask:
                    number = action.attempt + 1
                    self.dispatch(action.node, action.task, number, action.not_before)
                elif kind is CompleteTask or kind is FailTask:
                    self.inputs.pop(action.node, None)
                elif kind is FinishRun:
                    self._shell.finished(self._live, action)
            if self._shell.observers:
                self._shell.show(self._live, transition)

    def dispatch(self, node: str, task: str, number: int, not_before: int) -> None:
        """Start an attempt, or see that it starts at its time."""
        live = self._live
        if not_before and not_before > self._shell.clock.now():
            live.at(not_before, lambda: self._due(node, task, number))
            return
        stored = self.inputs[node]
        if isinstance(stored.place, tuple):
            self._shell.spawn(self._fetch_input(node, task, number, stored))
            return
        self._order(node, task, number, stored.place, stored.secrets)

    def _due(self, node: str, task: str, number: int) -> None:
        self.dispatch(node, task, number, 0)
        self._live.start_orders()

    async def _fetch_input(self, node: str, task: str, number: int, stored: Inputs) -> None:
        assert isinstance(stored.place, tuple)
        data = await self._shell.read(self._live.key, stored.place)
        stored.place = Raw(data)
        if not self._live.dead:
            self._order(node, task, number, stored.place, stored.secrets)
            self._live.start_orders()

    def _order(
        self, node: str, task: str, number: int, value: Raw, secrets: Mapping[str, str]
    ) -> None:
        live = self._live
        handling = live.machine.handling(node)
        order = Order(
            node, handling.type, task, number, value, secrets, handling.timeout,
            live.definition.name, live.run_id,
        )  # fmt: skip
        live.orders.append(order)
