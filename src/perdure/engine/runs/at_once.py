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
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from perdure.engine.attempts.orders import Order
from perdure.engine.runs.effects import Inputs
from perdure.engine.runs.shared_runner import spoils
from perdure.kernel.events import NodeCompleted
from perdure.kernel.onward import Onward

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

#: An attempt, what it came to, and what it raised.
Begun = tuple[Order, Any, BaseException | None]

_NO_SECRETS: Final[Mapping[str, str]] = {}


class AtOnce:
    """An engine's. `task`: in which attempts are made; `left`: how many may begin before others
    have their turn, `until`: when they have it, by `time`."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self.task: Any = None
        self.left = 0
        self.until = 0.0
        self.time: Callable[[], float] = float
        #: The attempt that has begun and has not completed, or is not to be reported yet.
        self.begun: Begun | None = None

    def begin(
        self, task: asyncio.Task[None], left: int, until: float, time: Callable[[], float]
    ) -> None:
        """A runner reports, and what follows may begin."""
        self.task, self.left, self.until, self.time = task, left, until, time

    def end(self) -> None:
        """It has reported: of its task and its loop, and of what has begun, nothing is kept."""
        self.task = self.begun = None
        self.time = float

    def attempt(self, live: LiveRun, onward: Onward) -> NodeCompleted | bool:
        """Make the first attempt of the step that follows, whose row is durable. How it completed;
        True: it has begun, and is told of otherwise; False: it has not."""
        holder, work, node = self._holder, live.work, onward.next
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
            handling.timeout, handling.step, None, None, input, _NO_SECRETS,
        )  # fmt: skip
        work.passing = self.task, order
        try:
            made: Any = holder.dispatcher.begin(order)
        except BaseException as error:  # whoever runs attempts knows what to do with it
            self.begun = order, None, error
        else:
            if (
                type(made) is NodeCompleted
                and live.inbox is None
                and not (live.dead or live.sending or spoils(self.task))
            ):
                return made
            self.begun = order, made, None
        inputs[node] = Inputs(input, _NO_SECRETS)
        return True


def outcome(begun: Begun) -> Any:
    """What the attempt came to. Raises what it raised."""
    _, made, error = begun
    if error is not None:
        raise error
    return made
