"""The code of a saga's steps: what the engine is handed to run an attempt, and to ask `when`.

A function takes the run's context; a declared step takes the payload. One whose function is not
in this process says so, and nothing runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from perdure.flow.codec import Codec, codec_of, read
from perdure.flow.step import Step
from perdure.flow.typed import or_null
from perdure.kernel import protocol
from perdure.model.errors import InvalidRequest, Permanent
from perdure.model.policy import Retry
from perdure.model.step_context import StepContext
from perdure.saga.context import Readers, Surroundings, context_of


class FunctionCode:
    """A function of the context: a step, or an undo."""

    __slots__ = ("_readers", "fn", "is_async", "missing", "name", "retry", "step")

    def __init__(
        self, name: str, readers: Readers, fn: Callable[..., Any], retry: Retry, *, is_async: bool
    ) -> None:
        self.name = name
        self.fn = fn
        self.is_async = is_async
        self.retry = retry
        self._readers = readers
        self.step: Step[..., Any] | None = None
        self.missing = ""

    def begin(
        self, around: Surroundings, context: StepContext, values: Codec | None, /
    ) -> tuple[StepContext, tuple[Any, ...]]:
        """The context that the attempt is to have, and the arguments of its function."""
        made = context_of(context, around, self._readers, values)
        return made, (made,)


class StepCode:
    """A declared step, called with the payload."""

    __slots__ = ("_readers", "fn", "is_async", "missing", "name", "retry", "step")

    def __init__(self, readers: Readers, step: Step[..., Any], retry: Retry) -> None:
        self.name = step.name
        self.step: Step[..., Any] | None = step
        self.fn = step.fn
        self.is_async = step.is_async
        self.retry = retry
        self._readers = readers
        self.missing = ""

    def begin(
        self, around: Surroundings, context: StepContext, values: Codec | None, /
    ) -> tuple[StepContext, tuple[Any, ...]]:
        """See FunctionCode.begin. Raises Permanent of InvalidRequest for a payload that does not
        fit (any more)."""
        try:
            return context, (read(self._readers.payload, or_null(around.payload), values),)
        except InvalidRequest as error:
            raise Permanent(error) from error


class NoCode:
    """Of a step that the saga registered here does not have (any more): nothing can run."""

    __slots__ = ("missing", "name")

    step = None
    is_async = True

    def __init__(self, name: str, missing: str) -> None:
        self.name = name
        self.missing = missing


class Gate:
    """A step's `when`, asked with the payload."""

    __slots__ = ("_asks", "_readers")

    def __init__(self, readers: Readers, asks: Callable[[Any], object]) -> None:
        self._readers = readers
        self._asks = asks

    def opens(self, input: Raw | None, codec: protocol.Codec, /) -> bool:
        """See kernel.plan.Gate. Raises what the function raises."""
        answer = self._asks(read(self._readers.payload, or_null(input), codec_of(codec)))
        if inspect.isawaitable(answer):
            raise TypeError("`when` gave a coroutine: it is a plain function of the payload")
        return bool(answer)


class NoGate:
    """Of a step whose `when` is not in this process."""

    def opens(self, input: Raw | None, codec: protocol.Codec, /) -> bool:
        """Never asked where it matters: see Saga.check_input."""
        raise LookupError("its `when` is code that this process does not have")
