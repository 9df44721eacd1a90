"""Awaiting a coroutine in a context of its own, inside the task that awaits it.

A new asyncio task per step costs more than most steps do. Here the coroutine is driven by the
task that is there: its context variables are its own, `asyncio.current_task()` and timeouts work as
usual, and a coroutine that never waits costs one call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from types import CoroutineType, coroutine
from typing import Any, TypeVar

from perdure.model.errors import Failure
from perdure.model.step_context import CURRENT, StepContext

A = TypeVar("A")
T = TypeVar("T")


def first_part(
    begin: Callable[[A, StepContext], Coroutine[Any, Any, Any]], attempt: A, step: StepContext
) -> tuple[Coroutine[Any, Any, Any], Any]:
    """Call what gives a coroutine, and run that until it first waits; it, and what it waits for.
    `current_step()` is `step`.

    To be called within the coroutine's context. Raises StopIteration with the result when it
    ends without waiting, and whatever it raises.
    """
    CURRENT.set(step)
    try:
        steps = begin(attempt, step)
    except StopIteration as error:
        raise RuntimeError("StopIteration was raised") from error  # it must not look like a result
    if type(steps) is not CoroutineType:
        steps = _awaited(steps)  # a decorator's function may be marked as `async`, and give a task
    try:
        return steps, steps.send(None)
    except GeneratorExit as error:
        raise _told(error) from error


async def _awaited(other: Awaitable[T]) -> T:
    return await other


@coroutine
def rest_of(
    steps: Coroutine[Any, Any, T], context: Context, waiting_for: Any
) -> Generator[Any, Any, T]:
    """Await the rest of a coroutine within its context, after `first_part` gave `waiting_for`."""
    while True:
        thrown: BaseException | None = None
        try:
            sent = yield waiting_for
        except GeneratorExit:
            context.run(steps.close)
            raise
        except BaseException as error:
            thrown = error
        try:
            if thrown is None:
                waiting_for = context.run(steps.send, sent)
            else:
                waiting_for = context.run(steps.throw, thrown)
        except StopIteration as stop:
            result: T = stop.value
            return result
        except GeneratorExit as error:
            raise _told(error) from error


def _told(error: GeneratorExit) -> Failure:
    """Raised out of a coroutine that nobody closes, it must not look as if somebody did."""
    return Failure(str(error), kind="GeneratorExit")
