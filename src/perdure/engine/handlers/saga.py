"""SagaHandler: runs the steps and undos of sagas, which the plan holds as the very code to run.

The code says with what its function is called; here it is executed, and what it noted goes with
what it returned.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from perdure.engine.handlers.port import Around, Attempt, StepNotRegistered
from perdure.engine.handlers.step import StepHandler, TypedValues, typed
from perdure.engine.handlers.task import TaskHandler
from perdure.model.policy import Retry
from perdure.model.step_context import CURRENT, StepContext


class Doing(Protocol):
    """The code of a step, or of an undo."""

    @property
    def name(self) -> str: ...
    @property
    def missing(self) -> str:
        """Why it cannot run in this process; "" where it can. Then nothing else is asked."""

    @property
    def fn(self) -> Callable[..., Any]: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def retry(self) -> Retry: ...
    def begin(
        self, around: Around, context: StepContext, values: Any, /
    ) -> tuple[StepContext, tuple[Any, ...]]:
        """The context that the attempt is to have, and the arguments of its function."""


class SagaHandler(StepHandler):
    """As for calls in workflows, the plan holds the code, its policy and its time. `codec`: the one
    of the typed doors, if they have one of their own, and `values` as it writes."""

    def __init__(
        self, tasks: TaskHandler, codec: Any = None, values: TypedValues | None = None
    ) -> None:
        super().__init__(tasks)
        self._codec = codec
        self._values = values

    def run(self, attempt: Attempt, context: StepContext, /) -> Coroutine[Any, Any, Any]:
        """What the step's function returned; what it notes is `attempt.noted`. Raises
        StepNotRegistered; what the function raised."""
        code: Doing = attempt.step
        if code.missing:
            raise StepNotRegistered(
                f"{code.missing}, and run {attempt.workflow}/{attempt.run_id} needs it: give the "
                "engine a version of the saga that has it",
                code.name,
                attempt,
            )
        assert attempt.around is not None
        own, args = code.begin(attempt.around, context, self._codec)
        if own is not context:
            CURRENT.set(own)
            attempt.noted = getattr(own, "noted", None)
        values = self._values
        done = self._tasks.perform(code, code.fn, code.is_async, context, args, {})
        return done if values is None else typed(values, done)
