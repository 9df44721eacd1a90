"""StepHandler: runs the calls of workflow functions, which carry the very step they call."""

from __future__ import annotations

import logging
from collections.abc import Coroutine
from typing import Any, Protocol

from msgspec import UNSET, Raw

from perdure.engine.handlers.port import Attempt, Given
from perdure.engine.handlers.task import TaskHandler
from perdure.model.errors import InvalidRequest, Permanent
from perdure.model.policy import NO_RETRY, RetryPolicy
from perdure.model.step_context import StepContext

_log = logging.getLogger("perdure.engine.steps")


class TypedValues(Protocol):
    """A codec of typed values, beside the engine's own. Both raise InvalidRequest."""

    def read(self, plain: Any, /) -> Any:
        """The arguments that a recorded value stands for."""

    def write(self, value: Any, /) -> Raw:
        """An output as it is recorded."""


class StepHandler:
    """Shares its threads with the TASK nodes' handler, which owns them."""

    def __init__(self, tasks: TaskHandler) -> None:
        self._tasks = tasks

    def timeout(self, attempt: Attempt, /) -> int:
        """The attempt's, in µs; 0 = no limit."""
        return attempt.timeout or 0

    def policy(self, step: str, /) -> RetryPolicy:
        """The machine knows the policy of each node."""
        return NO_RETRY

    def retries(self, attempt: Attempt, error: Exception, /) -> bool:
        """Whether the step's `retry_on` and `never_on` allow another attempt."""
        try:
            allowed: bool = attempt.step.retry.retries(error)
        except Exception:
            _log.exception("node %s: its retry_on failed, so it is not tried again", attempt.node)
            return False
        return allowed

    def run(self, attempt: Attempt, context: StepContext, /) -> Coroutine[Any, Any, Any]:
        """What the step's function returned. Raises Permanent of InvalidRequest when recorded
        arguments do not fit the function (any more), and what the function raised."""
        step = attempt.step
        try:
            args, kwargs = step.packer.unpack(attempt.input)
        except InvalidRequest as error:
            raise Permanent(error) from error
        return self._tasks.perform(step, step.fn, step.is_async, context, args, kwargs)

    async def close(self) -> None:
        """The threads are not its own."""


class TypedStepHandler(StepHandler):
    """The same, where the values of workflows have a codec of their own."""

    def __init__(self, tasks: TaskHandler, values: TypedValues) -> None:
        super().__init__(tasks)
        self._values = values

    def run(self, attempt: Attempt, context: StepContext, /) -> Coroutine[Any, Any, Any]:
        """See StepHandler.run."""
        if attempt.input is not UNSET:
            try:  # made again, an attempt has its input anew
                attempt.input = self._values.read(attempt.input)
            except InvalidRequest as error:
                raise Permanent(error) from error
        return typed(self._values, super().run(attempt, context))


async def typed(values: TypedValues, done: Coroutine[Any, Any, Any]) -> Given:
    """The output, to be recorded by the codec of typed values."""
    return Given(await done, values.write)
