"""@workflow: an `async def` whose calls are recorded, so that it survives its process.

Owns the declaration. The function runs on the code machine; this door only tells it what the
function takes, gives and may take in time. Definitions never change.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any, Final, Never, Protocol, Self, TypeVar, final, overload

from msgspec import Raw

from perdure.flow import legible
from perdure.flow.binding import Parameter, function_signature, parameters, resolved, written
from perdure.flow.codec import codec_of, read, read_in
from perdure.flow.context import Context
from perdure.flow.declaring import (
    Problems,
    checked_aliases,
    checked_description,
    checked_max_duration,
    checked_step_name,
    checked_version,
    takes_input,
)
from perdure.flow.program import FunctionProgram
from perdure.flow.typed import Reader, or_null, reader
from perdure.kernel.actions import Transition
from perdure.kernel.code.calls import Calls
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.events import RunStarted
from perdure.kernel.opening import opened_run, opening
from perdure.kernel.protocol import Deps
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.model.duration_forms import Duration
from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import InvalidRequest, MissingMaxDuration

I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741

RETENTION: Final = 30 * 86_400 * SECOND
#: How long code may clean up after a cancel or its deadline.
GRACE: Final = 30 * SECOND
_UNSAID: Final[Any] = object()


@final
class Workflow(Definition[I, O]):
    """A declared workflow. Made by `@workflow` only."""

    kind = "workflow"
    typed = True

    _name: str
    _version: str
    _fn: Callable[..., Coroutine[Any, Any, O]]
    _max_duration: int | None
    _retention: int
    _former: dict[str, Self]
    description: str
    takes_input: bool
    grace: int
    #: Whether its types could be looked at where it was declared.
    types_known: bool

    def __init__(self) -> None:
        raise TypeError("use @workflow on an async def")

    @property
    def name(self) -> str:
        """1-64 characters of a-z 0-9 -."""
        return self._name

    @property
    def version(self) -> str:
        """A label people read; "1" unless said."""
        return self._version

    @cached_property
    def hash(self) -> str:
        """Of name and version: what code does is compared with the journal as it runs."""
        return sha256(f"workflow\n{self._name}\n{self._version}".encode()).hexdigest()

    @property
    def source(self) -> bytes:
        """Empty: the code is the source."""
        return b""

    @property
    def fn(self) -> Callable[..., Coroutine[Any, Any, O]]:
        """The bare function."""
        return self._fn

    @property
    def max_duration(self) -> int | None:
        """How long a run may take, in µs; None = no end."""
        return self._max_duration

    @property
    def retention(self) -> int:
        """How long a finished run is kept, in µs."""
        return self._retention

    @cached_property
    def read_input(self) -> Reader:
        """Reads a recorded input as the type of the function's second parameter."""
        return reader(self._parameter.type, f"input of workflow {self._name}")

    @cached_property
    def read_output(self) -> Reader:
        """Reads a recorded output as the type that the function returns."""
        kind = resolved(
            function_signature(self._fn).return_annotation, getattr(self._fn, "__globals__", {})
        )
        return reader(kind, f"output of workflow {self._name}")

    def read_result(self, output: Raw, codec: Any) -> Any:
        """See Definition.read_result."""
        return read(self.read_output, output, codec_of(codec))

    def under(self, name: str) -> Self:
        """This workflow under a name that it had before; itself under its own."""
        return self._former.get(name, self)

    def check_input(self, input: bytes | None, codec: Any = None) -> None:
        """Raise InvalidRequest when the function cannot be called with this input, as JSON; None =
        none was given."""
        if not self.takes_input:
            if input is not None:
                raise InvalidRequest(f"workflow {self._name} takes no input: leave it out")
        elif input is not None:
            read(self.read_input, Raw(input), codec_of(codec))
        elif not self.has_default:
            try:
                self.read_input(or_null(None))
            except InvalidRequest:
                raise InvalidRequest(
                    f"workflow {self._name} needs an input, and none was given: it is called "
                    f"with {written(function_signature(self._fn))}"
                ) from None

    @cached_property
    def has_default(self) -> bool:
        """Whether the function can be called without its input."""
        return not self._parameter.required

    @cached_property
    def _parameter(self) -> Parameter:
        """The function's second parameter."""
        return parameters(self._fn, function_signature(self._fn))[1]

    @cached_property
    def program(self) -> FunctionProgram:
        """What the machine runs."""
        return FunctionProgram(self, self.grace, self._called)

    def _called(self, calls: Calls) -> Coroutine[Any, Any, O]:
        context = Context(calls, self)
        input = calls.run.input
        if not self.takes_input and calls.recorded is None:
            self.check_input(input)  # who started it by name did not know
        if self.takes_input and not (input is None and self.has_default):
            read = self.read_input
            value = read(or_null(None)) if input is None else read_in(calls, read, input)
            return self.fn(context, value)
        return self.fn(context)

    def machine(self, run: Any, deps: Any) -> CodeMachine:
        """The kernel's machine for a run of this workflow."""
        return CodeMachine(self.program, run, deps)

    def straight_start(
        self, event: RunStarted, deps: Deps, now: int
    ) -> tuple[Run, CodeMachine, Transition] | None:
        """See Definition.straight_start."""
        if event.start_node is not None:  # refused by the machine
            return None
        opened = opening(self.program, event)
        run = opened_run(opened, now)
        return run, CodeMachine(self.program, run, deps), Transition(now, [opened])


class WorkflowDecorator(Protocol):
    """What `@workflow(...)` gives."""

    @overload
    def __call__(self, fn: Callable[[Context, I], Coroutine[Any, Any, O]], /) -> Workflow[I, O]: ...
    @overload
    def __call__(self, fn: Callable[[Context], Coroutine[Any, Any, O]], /) -> Workflow[None, O]: ...


def workflow(
    *bare: Never,
    max_duration: Duration | None = _UNSAID,
    name: str | None = None,
    version: str = "1",
    retention: Duration = RETENTION // SECOND,
    description: str = "",
    aliases: Sequence[str] = (),
) -> WorkflowDecorator:
    """Declare a workflow: `@workflow(max_duration="7d")` on `async def f(ctx)` or `f(ctx, input)`.

    max_duration must be said; None = no end. name: from the function unless given. version: a
    label. retention: how long a finished run is kept, 30 days unless said. aliases: names that it
    had before: runs recorded under them are claimed, found and joined as runs of this one, and
    keep that name. Raises DefinitionError with all that is wrong, a single problem as itself
    (MissingMaxDuration, InvalidName, InvalidOptions), where the workflow is written.
    """

    def declare(function: Any) -> Any:
        shown = getattr(function, "__qualname__", repr(function))
        problems = Problems(f"@workflow on {shown}")
        made: Workflow[Any, Any] = object.__new__(Workflow)
        made._fn = function
        made.takes_input = bool(problems.of(takes_input, function))
        made._name = problems.of(checked_step_name, name, function, "workflow") or ""
        made._version = problems.of(checked_version, version) or ""
        made._max_duration = problems.of(_said_max_duration, max_duration)
        made._retention = problems.of(_checked_retention, retention) or RETENTION
        made.description = problems.of(checked_description, description) or ""
        made.aliases = problems.of(checked_aliases, aliases, made._name) or ()
        made.grace = GRACE
        made.types_known = problems.of(legible.check_function, function, 1) is not False
        problems.raise_any()
        made.__doc__ = function.__doc__
        made._former = {alias: _renamed(made, alias) for alias in made.aliases}
        return made

    if bare:
        raise MissingMaxDuration(
            '@workflow needs its time: write @workflow(max_duration="7d"), or None for no end'
        )
    return declare


def _renamed(workflow: Workflow[I, O], name: str) -> Workflow[I, O]:
    """The same under another name, its only one."""
    copy: Workflow[I, O] = object.__new__(Workflow)
    vars(copy).update(vars(workflow), _name=name, aliases=(), _former={})
    return copy


def _said_max_duration(value: Any) -> int | None:
    if value is _UNSAID:
        raise MissingMaxDuration('say max_duration, such as "7d"; None = no end')
    return checked_max_duration(value)


def _checked_retention(value: Duration) -> int:
    return microseconds(value, "retention") or RETENTION
