"""Fakes: what steps answer in a test instead of doing what they do, and who was called with what.

Only what a step does is replaced: its arguments have to fit its real signature, and its retries and
timeouts are its own.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, TypeVar

from msgspec import UNSET

from perdure.engine.handlers.task import Named, TaskHandler
from perdure.flow.binding import function_signature
from perdure.flow.step import Step
from perdure.model.errors import InvalidRequest
from perdure.model.step_context import StepContext

R = TypeVar("R")
Answer = Callable[..., Any]
_STOPS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)


class Fake(Generic[R]):
    """What stands in for a step. `calls`: the arguments of every attempt, as the function gets
    them, in the order in which they began."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.calls: list[tuple[Any, ...]] = []

    async def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls.append((*args, *kwargs.values()))
        result = self._answer(*args, **kwargs)
        return await result if inspect.isawaitable(result) else result


def answer_of(
    returns: Any = UNSET,
    raises: BaseException | Sequence[BaseException] | None = None,
    fn: Callable[..., Any | Awaitable[Any]] | None = None,
) -> Answer:
    """A function that answers so; exactly one of the three is given. Raises InvalidRequest."""
    if (returns is not UNSET) + (raises is not None) + (fn is not None) != 1:
        raise InvalidRequest("fake(step, …): give returns=, raises= or a function, one of them")
    if fn is not None:
        return fn
    if raises is None:
        return lambda *_, **__: returns
    errors = [raises] if isinstance(raises, BaseException) else list(raises)
    if not errors or any(isinstance(e, _STOPS) or not isinstance(e, BaseException) for e in errors):
        raise InvalidRequest(f"fake(step, raises={raises!r}): give an exception, or a list of them")
    made = iter(errors)

    def fail(*_: Any, **__: Any) -> Any:
        raise next(made, errors[-1]).with_traceback(None)

    return fail


class FakedTasks(TaskHandler):
    """The steps of an engine, some of them faked. `done`: how often each attempt of each call
    (workflow, run, node, attempt) was made, by step."""

    def __init__(self, steps: Any, threads: int | None) -> None:
        super().__init__(steps, threads)
        self.fakes: dict[str, Fake[Any]] = {}
        self.done: dict[str, Counter[tuple[str, str, str, int]]] = {}
        #: Counts what happens, for whoever waits until nothing does.
        self.pulse = 0

    def fake(self, step: Step[..., R], answer: Answer) -> Fake[R]:
        """Let this answer for the step, and for copies of it, from now on."""
        if not isinstance(step, Step):
            raise InvalidRequest(f"fake({step!r}): give it a step")
        made: Fake[R] = Fake(answer)
        self.fakes[step.name] = made
        return made

    async def perform(
        self,
        step: Named,
        function: Callable[..., Any],
        is_async: bool,
        context: StepContext,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """See TaskHandler.perform."""
        place = (context.workflow, context.run_id, context.node, context.attempt)
        self.done.setdefault(step.name, Counter())[place] += 1
        self.pulse += 1
        fake = self.fakes.get(step.name)
        try:
            if fake is None:
                return await super().perform(step, function, is_async, context, args, kwargs)
            bound = function_signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            return await super().perform(
                step, fake._called, True, context, (bound.args, bound.kwargs), {}
            )
        finally:
            self.pulse += 1
