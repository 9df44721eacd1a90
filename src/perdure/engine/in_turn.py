"""InTurn: a workflow's next step is made in the turn that asks for it, if nothing has to wait.

Code that calls one step after another would leave its turn at each of them, only to be resumed at
once. Where the store has the row before `write` returns, and the step ends without waiting, its
output is what the call returns, and the code goes on. The rows are those that would have been
written anyhow, one for each step and before it begins.

Whatever else happens meanwhile (a message, a step that waits, fails or cancels its task, a row that
is not taken, a lease that may be over) ends this: the code is left waiting, and all goes its usual
way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET

from perdure.engine.effects import Inputs
from perdure.engine.orders import Order
from perdure.engine.shared_runner import spoils
from perdure.engine.stepping import first_part
from perdure.kernel.code.call import How
from perdure.kernel.events import NodeCompleted
from perdure.kernel.onward import Onward
from perdure.kernel.run import Run

if TYPE_CHECKING:
    from perdure.engine.live_run import LiveRun
    from perdure.engine.shell import Shell

#: An attempt, what it came to, and what it raised.
Begun = tuple[Order, Any, BaseException | None]

_NO_SECRETS: Final[Mapping[str, str]] = {}


class InTurn:
    """An engine's. Only while a runner reports may steps of that run be made so; `left`: how many
    before others have their turn, `until`: when they have it, by `time`."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._live: LiveRun | None = None
        self._task: Any = None
        self.left = 0
        self.until = 0.0
        self.time: Callable[[], float] = float
        #: The attempt that has begun so and has not completed, and what it came to.
        self._begun: Begun | None = None

    def report(self, live: LiveRun, made: Any, task: asyncio.Task[None]) -> Begun | None:
        """LiveRun.report; the attempt that began meanwhile and is not told of, if one did."""
        work = live.work
        if live.is_quiet and not (work.orders or work.held):
            self._live, self._task = live, task
        try:
            live.report(made)
        finally:
            self._live = None
            begun, self._begun = self._begun, None
        return begun

    def carry(self, run: Run, onward: Onward, how: How) -> NodeCompleted | bool:
        """See kernel.protocol.Carry."""
        shell, live = self._shell, self._live
        if (
            live is None
            or run is not live.run
            or shell.stopping
            or shell.observers
            or self.left <= 0
            or self.time() >= self.until
        ):
            return False
        try:
            durable = live.record(onward)
        except Exception:
            return False  # it is met with again, and heard
        if not durable:
            self._live = None
            return True
        inputs = live.inputs
        if inputs:
            inputs.pop(onward.node, None)
        self.left -= 1
        node, task, input = onward.next, onward.next_task, onward.input
        order = Order(
            live.workflow, live.run_id, node, how.type, task, 0, UNSET,
            how.timeout, how.step, None, None, input, _NO_SECRETS,
        )  # fmt: skip
        runner = self._task
        live.work.passing = runner, order
        try:
            context = shell.shared_runner.context.copy()
            made: Any = shell.dispatcher.begin(order, first_part, context)
        except BaseException as error:  # it is not the code's that called the step
            self._begun = order, None, error
        else:
            undisturbed = live.inbox is None and not live.dead and not spoils(runner)
            if undisturbed and type(made) is NodeCompleted:
                return made
            self._begun = order, made, None
        inputs[node] = Inputs(input, _NO_SECRETS)
        self._live = None
        return True


def outcome(begun: Begun) -> Any:
    """What the attempt came to. Raises what it raised."""
    _, made, error = begun
    if error is not None:
        raise error
    return made
