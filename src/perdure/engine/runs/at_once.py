"""AtOnce: a run's next step begins at once, where nothing has to be waited for.

Most often a step completed, one other follows it, and the store has the row that says so before
`write` returns. Then the step begins there and then, and if it ends without waiting, what follows
from that is decided on next, and so on: one loop (LiveRun.report), with none of the ways between
whoever decides, whoever carries out and whoever runs attempts. Rows and their order are the same,
each durable before its step begins.

Whatever else happens (a message, a step that waits, fails or cancels its task, a run that was let
go of) ends this: the attempt has begun, and Runners.advance goes on with it as with any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from perdure.engine.attempts.orders import NO_SECRETS, Order
from perdure.engine.runs.launches import Inputs
from perdure.engine.runs.shared_runner import spoils
from perdure.kernel.events import NodeCompleted
from perdure.kernel.onward import Onward

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun


class Begun(msgspec.Struct, eq=False):
    """An attempt that has begun: what it came to so far, or what it raised."""

    order: Order
    made: Any
    error: BaseException | None

    def outcome(self) -> Any:
        """What the attempt came to. Raises what it raised, which is not kept."""
        error, self.error = self.error, None
        if error is None:
            return self.made
        try:
            raise error
        finally:
            del error  # its traceback has this frame


class AtOnce(msgspec.Struct, eq=False):
    """What may begin with one report. `task`: in which attempts are made; `left`: how many may
    begin before others have their turn, `until`: when they have it, by `time`."""

    holder: Holder
    task: asyncio.Task[None]
    left: int
    until: float
    time: Callable[[], float]
    #: The attempt that has begun and has not completed, or is not to be reported yet.
    begun: Begun | None = None

    def attempt(self, live: LiveRun, onward: Onward) -> NodeCompleted | bool:
        """Make the first attempt of the step that follows, whose row is durable. How it completed;
        True: it has begun, and is told of otherwise; False: it has not."""
        holder, work, node = self.holder, live.work, onward.next
        handling = live.machine.handlings[node]
        if (
            handling.around
            or work.orders
            or work.held
            or holder.stopping
            or holder.observers
            or self.left <= 0
            or self.time() >= self.until
        ):
            return False
        self.left -= 1
        inputs, input = live.inputs, onward.input
        if inputs and (over := inputs.pop(onward.node, None)) is not None and over.timed:
            live.timers.disarm(onward.node)
        order = Order(
            live.workflow, live.run_id, node, handling.type, onward.next_task, 0, UNSET,
            handling.timeout, handling.step, None, None, input, NO_SECRETS,
        )  # fmt: skip
        work.passing = self.task, order
        try:
            made: Any = holder.dispatcher.begin(order)
        except BaseException as error:  # whoever runs attempts knows what to do with it
            self.begun = Begun(order, None, error)
        else:
            if (
                type(made) is NodeCompleted
                and live.inbox is None
                and not (live.dead or live.sending or spoils(self.task))
            ):
                return made
            self.begun = Begun(order, made, None)
        inputs[node] = Inputs(input, NO_SECRETS)
        return True
