"""@step: a function whose effect is recorded, with the policy it runs under.

Owns the declaration and nothing of its execution: an engine finds a step by name and runs its
`fn`; called outside a workflow a step just runs its function. Steps never change: `with_options`
gives a copy.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Coroutine
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from msgspec import UNSET, UnsetType

from perdure.flow import declaring, legible
from perdure.flow.binding import Arguments, Binder, function_signature, resolved
from perdure.flow.calling import Callee, call_step, how_of
from perdure.flow.fitting import Misfit, misfits
from perdure.flow.packing import Packer
from perdure.flow.typed import Reader, reader
from perdure.kernel.code.call import How
from perdure.model.duration_forms import Duration
from perdure.model.names import check_name
from perdure.model.policy import Retry, as_retry

P = ParamSpec("P")
R = TypeVar("R")


class Step(Generic[P, R]):
    """A declared side effect. Calling it gives a coroutine, for `def` and `async def` alike.

    Outside a workflow the call runs the function: an `async def` on the spot, a `def` in a
    thread. Made by `@step` only.
    """

    _name: str
    _fn: Callable[P, Any]
    _retry: Retry
    _timeout: int
    _queue: str
    _priority: int
    _label: str
    _is_async: bool
    _base: Step[P, R]
    #: Whether its types could be looked at where it was declared.
    types_known: bool

    @property
    def name(self) -> str:
        """1-64 characters of a-z 0-9 -."""
        return self._name

    @property
    def fn(self) -> Callable[P, Any]:
        """The bare function."""
        return self._fn

    @property
    def retry(self) -> Retry:
        """How often and when a failed attempt is repeated; one attempt unless said."""
        return self._retry

    @property
    def timeout_us(self) -> int:
        """How long one attempt may take, in µs; 0 = no limit."""
        return self._timeout

    @property
    def queue(self) -> str:
        """The queue its calls are put in."""
        return self._queue

    @property
    def priority(self) -> int:
        """Within the queue, larger is sooner."""
        return self._priority

    @property
    def label(self) -> str:
        """What is shown for its calls; empty = the name."""
        return self._label

    @property
    def is_async(self) -> bool:
        """Whether the function is an `async def`."""
        return self._is_async

    @property
    def base(self) -> Step[P, R]:
        """The step as declared, of which this is a copy by `with_options`, or itself."""
        return self._base

    if TYPE_CHECKING:
        # Spelled so that gather() and the like keep the type.
        async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    else:
        __call__ = call_step

    async def _called_outside(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._is_async:
            return await self._fn(*args, **kwargs)
        return await asyncio.to_thread(_in_thread, self._fn, args, kwargs)

    @cached_property
    def packer(self) -> Packer:
        """How calls inside a workflow are recorded."""
        return Packer(self._name, self._fn)

    @cached_property
    def otherwise(self) -> Step[P, R]:
        """This step for calls whose arguments are recorded in their other form."""
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, packer=self.packer.otherwise())
        copy.__dict__.pop("how", None)
        return copy

    @cached_property
    def how(self) -> How:
        """How the engine runs calls made inside a workflow."""
        return how_of(self, self._retry.policy, self._timeout, self._queue)

    @cached_property
    def read_output(self) -> Reader:
        """Reads a recorded output as the type that the function returns."""
        kind = resolved(
            function_signature(self._fn).return_annotation, getattr(self._fn, "__globals__", {})
        )
        return reader(kind, f"output of step {self._name}")

    def unpack(self, value: Any) -> Arguments:
        """The arguments of a call made inside a workflow. Raises InvalidRequest."""
        return self.packer.unpack(value)

    @cached_property
    def bind(self) -> Callable[..., Arguments]:
        """The function's arguments from a JSON value, for a call by name (see Binder).

        `bind()` is a call without input. Raises InvalidRequest.
        """
        return self._binder.bind

    def misfits(self, input: Any = UNSET) -> list[Misfit]:
        """What a call by name with this input would be refused for, told before a run: the place
        below the input, what is wrong, what to do. What is not known yet is UNKNOWN in it."""
        return misfits(self._binder, input)

    @cached_property
    def _binder(self) -> Binder:
        return Binder(self._name, self._fn)

    def with_options(
        self,
        *,
        retry: int | Retry | UnsetType = UNSET,
        timeout: Duration | UnsetType | None = UNSET,
        queue: str | UnsetType = UNSET,
        priority: int | UnsetType = UNSET,
        label: str | UnsetType = UNSET,
    ) -> Self:
        """A copy with these options changed: same name, same function, all else kept.

        Raises DefinitionError (InvalidOptions, InvalidName).
        """
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        for made_of_options in ("how", "otherwise"):
            copy.__dict__.pop(made_of_options, None)
        problems = declaring.Problems(f"step {self._name}")
        if retry is not UNSET:
            copy._retry = problems.of(as_retry, retry) or self._retry
        if timeout is not UNSET:
            copy._timeout = problems.of(declaring.checked_timeout, timeout) or 0
        if queue is not UNSET:
            copy._queue = problems.of(check_name, queue, "queue") or ""
        if priority is not UNSET:
            copy._priority = problems.of(declaring.checked_priority, priority) or 0
        if label is not UNSET:
            copy._label = problems.of(declaring.checked_label, label) or ""
        problems.raise_any()
        return copy

    def __repr__(self) -> str:
        return f"<step {self._name}>"


class SyncStep(Step[P, R]):
    """What `@step` makes of a plain `def`: `.fn` is exactly typed for synchronous programs."""

    @property
    def fn(self) -> Callable[P, R]:
        """The bare function."""
        return self._fn


class StepDecorator(Protocol):
    """What `@step(...)` with options gives."""

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a coroutine function is also Callable[P, R]
        self, fn: Callable[P, Coroutine[Any, Any, R]], /
    ) -> Step[P, R]: ...
    @overload
    def __call__(self, fn: Callable[P, R], /) -> SyncStep[P, R]: ...


@overload
def step(  # type: ignore[overload-overlap]  # a coroutine function is also Callable[P, R]
    fn: Callable[P, Coroutine[Any, Any, R]], /
) -> Step[P, R]: ...
@overload
def step(fn: Callable[P, R], /) -> SyncStep[P, R]: ...
@overload
def step(
    *,
    name: str | None = None,
    retry: int | Retry = 1,
    timeout: Duration | None = 60,
    queue: str = "default",
    priority: int = 0,
) -> StepDecorator: ...
def step(
    fn: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    retry: int | Retry = 1,
    timeout: Duration | None = 60,
    queue: str = "default",
    priority: int = 0,
) -> Any:
    """Declare a step: `@step`, or `@step(retry=5, timeout="2m")`.

    name: from the function unless given (`send_welcome` is `send-welcome`). retry: executions in
    all, or a Retry. timeout: of each attempt, 60 s unless said; None or 0 = no limit. queue:
    where its calls wait for a worker; priority: within the queue, larger is sooner.
    Raises DefinitionError with all that is wrong, where the step is written.
    """

    def declare(function: Callable[..., Any]) -> Step[..., Any]:
        shown = getattr(function, "__qualname__", repr(function))
        problems = declaring.Problems(f"@step on {shown}")
        problems.of(declaring.check_function, function)
        made: Step[..., Any] = object.__new__(
            Step if inspect.iscoroutinefunction(function) else SyncStep
        )
        made._is_async = type(made) is Step
        made._name = problems.of(declaring.checked_step_name, name, function) or ""
        made._fn = function
        made._retry = problems.of(as_retry, retry) or Retry(1)
        made._timeout = problems.of(declaring.checked_timeout, timeout) or 0
        made._queue = problems.of(check_name, queue, "queue") or ""
        made._priority = problems.of(declaring.checked_priority, priority) or 0
        made._label = ""
        made._base = made
        made.types_known = problems.of(legible.check_function, function) is not False
        problems.raise_any()
        functools.update_wrapper(made, function, updated=())
        return made

    return declare if fn is None else declare(fn)


def _in_thread(function: Callable[..., R], args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
    try:
        return function(*args, **kwargs)
    except StopIteration as error:
        # A future cannot hold one: the caller would wait for ever.
        raise RuntimeError("the step raised StopIteration") from error


if TYPE_CHECKING:

    def _is_callee(made: Step[..., Any]) -> Callee:
        return made
