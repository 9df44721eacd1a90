"""Awaiting a coroutine in a context of its own, inside the task that awaits it.

A new asyncio task per step costs more than most steps do. Here the coroutine is driven by the
run's own task: its context variables are its own, `asyncio.current_task()` and timeouts work as
usual, and a coroutine that never waits costs one call.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


@coroutine
def run_in_context(
    context: Context, steps: Coroutine[Any, Any, T], on_waiting: Callable[[], None]
) -> Generator[Any, Any, T]:
    """Await `steps` within `context`; `on_waiting` is called if and when it first has to wait."""
    send, throw = steps.send, steps.throw
    try:
        waiting_for = context.run(send, None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    on_waiting()
    while True:
        try:
            sent = yield waiting_for
        except GeneratorExit:
            context.run(steps.close)
            raise
        except BaseException as error:
            call, value = throw, error
        else:
            call, value = send, sent  # type: ignore[assignment]
        try:
            waiting_for = context.run(call, value)
        except StopIteration as stop:
            result = stop.value
            return result
