"""An attempt's coroutine, in a context of its own, inside the task that is there.

A new asyncio task per step costs more than most steps do. Here the coroutine is driven by the
task that is there: its context variables are its own, `asyncio.current_task()` and timeouts work as
usual, and a coroutine that never waits costs one call. One that does wait is driven by its task's
Runner, and no coroutine of the engine's stands around it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from perdure.engine.attempts.part import OVER
from perdure.model.errors import Failure
from perdure.model.step_context import CURRENT, StepContext

if TYPE_CHECKING:
    from contextvars import Context

    from perdure.engine.attempts.ends import Report
    from perdure.engine.attempts.orders import EngineStep, Order
    from perdure.engine.attempts.part import Part
    from perdure.engine.attempts.timeouts import Watch

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
        raise as_failure(error) from error


async def _awaited(other: Awaitable[T]) -> T:
    return await other


class Ends(Protocol):
    """Says what an attempt that has waited comes to. Raises what is not the attempt's own."""

    def returned(self, attempt: Waiting, value: Any, /) -> Report | None:
        """It returned this."""

    def raised(self, attempt: Waiting, error: BaseException, /) -> Report | None:
        """It raised this."""

    def closed(self, attempt: Waiting, /) -> None:
        """It was closed: it comes to nothing."""


class Whose(Protocol):
    """Whoever an attempt is made for."""

    def heard(self, attempt: Waiting, /) -> Part | None:
        """It has ended, and its `report` is set: what its task is to run next."""

    def cannot(self, order: Order, error: BaseException, /) -> None:
        """The engine failed at it."""


class Waiting(msgspec.Struct, eq=False):
    """An attempt from where it first waits, with its coroutine (`steps`) and that one's context: a
    part.Part, and a timeouts.Watch. Each attempt that waits has one: it is kept small."""

    order: Order
    step: EngineStep
    ends: Ends
    steps: Coroutine[Any, Any, Any]
    context: Context
    #: What it first waits for; None once that is known to the task.
    awaited: Any
    #: Whose attempt it is, and the task that it is made in: set as soon as that is known.
    whose: Whose = None  # type: ignore[assignment]
    task: asyncio.Task[Any] = None  # type: ignore[assignment]
    #: How it ended.
    report: Report | None = None
    deadline: float = 0.0
    queue: dict[Watch, None] | None = None
    expired: bool = False

    def first(self) -> Any:
        """See Part.first."""
        awaited, self.awaited = self.awaited, None
        return awaited

    def send(self, value: Any) -> Any:
        """See Part.send."""
        return self._go_on(self.steps.send, value)

    def throw(self, error: BaseException) -> Any:
        """See Part.throw."""
        return self._go_on(self.steps.throw, error)

    def _go_on(self, way: Callable[[Any], Any], given: Any) -> Any:
        try:
            return self.context.run(way, given)
        except StopIteration as stop:
            self.report = self.ends.returned(self, stop.value)
        except BaseException as error:
            self.report = self.ends.raised(self, error)
        return OVER

    def close(self) -> None:
        """See Part.close. It has no outcome."""
        self.ends.closed(self)
        self.context.run(self.steps.close)

    def following(self) -> Part | None:
        """See Part.following."""
        return self.whose.heard(self)

    def on_expiry(self) -> None:
        """Its time is over."""
        self.step.canceled = True
        self.task.cancel()

    def left(self) -> float:
        """How many seconds it still has, as one that waited for a thread."""
        queued, limit = self.order.queued, self.step.limit
        return 0.0 if queued is None or limit is None else queued.left(limit)


def as_failure(error: GeneratorExit) -> Failure:
    """Raised out of a coroutine that nobody closes, it must not look as if somebody did."""
    failure = Failure(str(error), kind="GeneratorExit")
    failure.__cause__ = error
    return failure
