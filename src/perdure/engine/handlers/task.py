"""TaskHandler: runs steps by name, for TASK nodes.

An `async def` is awaited where it is called; a `def` runs in one of a bounded number of threads.
Whatever a step raises comes out as it is.
"""

from __future__ import annotations

import asyncio
import contextvars
import difflib
import functools
import inspect
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

from msgspec import UNSET

from perdure.engine.handlers.port import Attempt, StepNotRegistered, Unrecordable
from perdure.engine.handlers.queued import Queued
from perdure.engine.handlers.threads import Threads
from perdure.model.errors import InvalidRequest, Permanent
from perdure.model.policy import NO_RETRY, Retry, RetryPolicy
from perdure.model.step_context import StepContext

_log = logging.getLogger("perdure.engine.steps")


class Named(Protocol):
    """What is performed, as messages say it."""

    @property
    def name(self) -> str: ...


class RunnableStep(Named, Protocol):
    """What the handler needs of a step."""

    @property
    def fn(self) -> Callable[..., Any]: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def retry(self) -> Retry: ...
    @property
    def timeout_us(self) -> int: ...
    def bind(self, input: Any = ..., /) -> tuple[tuple[Any, ...], dict[str, Any]]: ...


#: A step, and what a call of it takes.
_Call = tuple[RunnableStep, Callable[..., tuple[tuple[Any, ...], dict[str, Any]]], Any, bool]


class TaskHandler:
    """Runs the steps given, found by `attempt.input["step"]`, with `attempt.input["input"]`.

    threads: how many `def` steps run at a time, by default min(32, processors + 4). A thread is
    made when first needed.
    """

    def __init__(self, steps: Mapping[str, RunnableStep], threads: int | None = None) -> None:
        self._steps = dict(steps)
        #: What each attempt asks of its step, asked once; of `_calls` when it is first called.
        self._limits = {name: s.timeout_us for name, s in self._steps.items()}
        self._calls: dict[str, _Call] = {}
        self._policies = {name: step.retry.policy for name, step in self._steps.items()}
        self._threads = threads or min(32, (os.cpu_count() or 1) + 4)
        self._executor: Threads | None = None
        #: Threads still busy with an attempt whose time was over.
        self.zombies = 0

    def timeout(self, attempt: Attempt, /) -> int:
        """The node's timeout, else the step's, in µs; 0 = no limit."""
        if attempt.timeout is not None:
            return attempt.timeout
        try:
            return self._limits[attempt.input["step"]]
        except (KeyError, TypeError):  # it has none, or names no step
            return 0

    def policy(self, step: str, /) -> RetryPolicy:
        """The policy the step was declared with; one attempt for a step unknown here."""
        return self._policies.get(step, NO_RETRY)

    def retries(self, attempt: Attempt, error: Exception, /) -> bool:
        """Whether the step's own `retry_on` and `never_on` allow another attempt."""
        step = self._steps.get(_step_name(attempt))
        if step is None:
            return True
        try:
            return step.retry.retries(error)
        except Exception:
            _log.exception("step %s: its retry_on failed, so it is not tried again", step.name)
            return False

    def run(self, attempt: Attempt, context: StepContext, /) -> Coroutine[Any, Any, Any]:
        """What the step's function returned. (One coroutine less than an `async def`.)

        Raises StepNotRegistered; Permanent of InvalidRequest when the input does not fit the
        function; what the function raised. When it is cancelled at the moment a `def` ends, the
        outcome is returned and the cancellation left to be seen in `Task.cancelling()`.
        """
        input = attempt.input
        try:
            call = self._calls[input["step"]]
        except (KeyError, TypeError):  # also where it is no name at all
            call = self._call(attempt)
        step, bind, function, is_async = call
        try:
            args, kwargs = bind(input.get("input", UNSET))
        except InvalidRequest as error:
            raise Permanent(error) from error
        return self.perform(step, function, is_async, context, args, kwargs)

    def _call(self, attempt: Attempt) -> _Call:
        name = _step_name(attempt)
        step = self._steps.get(name)
        if step is None:
            raise self._missing(name, attempt)
        call = self._calls[name] = step, step.bind, step.fn, step.is_async
        return call

    def perform(
        self,
        step: Named,
        function: Callable[..., Any],
        is_async: bool,
        context: StepContext,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Coroutine[Any, Any, Any]:
        """What the function returned; see `run`."""
        if is_async:
            made: Coroutine[Any, Any, Any] = function(*args, **kwargs)
            return made
        return self._in_thread(step, context, functools.partial(function, *args, **kwargs))

    async def close(self) -> None:
        """Take no more work; threads that are busy end when their step does."""
        if self._executor is not None:
            self._executor.close()
            self._executor = None

    def _missing(self, name: str, attempt: Attempt) -> StepNotRegistered:
        near = difflib.get_close_matches(name, self._steps, n=3)
        hint = f" (similar: {', '.join(near)})" if near else ""
        return StepNotRegistered(
            f"step {name!r} of {attempt.workflow}/{attempt.run_id}, node {attempt.node}, is "
            f"not registered here{hint}: give it to the engine, Engine(store, [..., the_step])",
            name,
            attempt,
        )

    async def _in_thread(self, step: Named, context: StepContext, call: Callable[[], Any]) -> Any:
        if self._executor is None:
            self._executor = Threads(self._threads)
        queued = context._queue() if self._executor.full else None
        if queued is not None:
            call = functools.partial(_in_turn, queued, call)
        running = self._executor.submit(functools.partial(contextvars.copy_context().run, call))
        if queued is not None:
            queued.running = running
        try:
            await _ended(running)
        except asyncio.CancelledError:
            context.canceled = True
            if running.cancel():  # it never began
                raise
            if not running.done():
                self._left_behind(step, running)
                raise
            # It ended at the same moment: a finished step keeps its outcome.
        finally:
            if queued is not None:
                queued.running = None  # what it raised holds on to the attempt, and that to it
        result = running.result()
        if inspect.iscoroutine(result):
            result.close()
            raise Unrecordable(
                f"step {step.name} is a `def` that returned a coroutine: "
                "make it an `async def`, or put @step above its other decorators' functions"
            )
        return result

    def _left_behind(self, step: Named, running: Future[Any]) -> None:
        loop = asyncio.get_running_loop()
        self.zombies += 1
        _log.warning(
            "step %s was told to stop and keeps its thread (%d of %d threads are so): "
            "let it look at current_step().canceled",
            step.name,
            self.zombies,
            self._threads,
        )

        def gone() -> None:
            self.zombies -= 1

        def ended(_: Future[Any]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody counts any more
                loop.call_soon_threadsafe(gone)

        running.add_done_callback(ended)


def _in_turn(queued: Queued, call: Callable[[], Any]) -> Any:
    queued.begins()
    return call()


async def _ended(running: Future[Any]) -> None:
    """Wait until it has ended; what it raised is left in it.

    Not asyncio.wrap_future: that cannot carry a StopIteration and waits for ever.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def ended(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(wake)

    running.add_done_callback(ended)
    await waiter


def _step_name(attempt: Attempt) -> str:
    input = attempt.input
    name = input.get("step") if type(input) is dict else None
    return name if type(name) is str else ""
