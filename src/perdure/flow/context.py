"""Context: what a workflow's code can ask for besides calling steps.

Everything here is recorded, or follows from what is: time, ids and chance too. Decides nothing;
the code machine does.
"""

from __future__ import annotations

import logging
import random
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    MutableMapping,
)
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, ParamSpec, TypeVar, overload
from uuid import UUID

from perdure.flow.children import call_child
from perdure.flow.codec import read_in, written_in
from perdure.flow.mapping import any_of, completed, map_items
from perdure.flow.native import NativeRuntime
from perdure.flow.selecting import first_of, taken
from perdure.flow.signal import Case, Channel, Signal, aware
from perdure.flow.undoing import Undo
from perdure.kernel.code.call import CHILD, SPAWN, WAIT, Call, CallFuture
from perdure.kernel.code.calls import Calls
from perdure.kernel.code.stuck import ContinueAsNew
from perdure.kernel.code.waits import await_first
from perdure.model.definition import Definition
from perdure.model.duration_forms import Duration
from perdure.model.durations import remaining
from perdure.model.errors import Failure, InvalidOptions
from perdure.model.moments import moment, since_epoch

if TYPE_CHECKING:
    from perdure.flow.runtime import Runtime
    from perdure.flow.step import Step

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
I = TypeVar("I")  # noqa: E741
O = TypeVar("O")  # noqa: E741

_NOT_GIVEN: Final[Any] = object()
_log = logging.getLogger("perdure.workflow")


class Context:
    """A run, seen from inside its workflow's function."""

    __slots__ = ("_calls", "_drawn", "_facts", "_logger", "_random", "_workflow")

    def __init__(self, calls: Calls, workflow: Definition[Any, Any] | None = None, /) -> None:
        self._calls = calls
        self._workflow = workflow
        #: What signals said, for good; None while none has said anything.
        self._facts: dict[str, Any] | None = None
        self._drawn = 0
        self._random: random.Random | None = None
        self._logger: logging.LoggerAdapter[logging.Logger] | None = None

    @property
    def id(self) -> str:
        """The run's id."""
        return self._calls.run.id

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self._calls.run.definition

    @property
    def metadata(self) -> Mapping[str, str]:
        """What the run was started with."""
        return MappingProxyType(self._calls.run.metadata)

    @property
    def canceled(self) -> bool:
        """Whether the run is to end, by a cancel or its deadline."""
        return self._calls.stop_seen

    @property
    def raw(self) -> Runtime:
        """The engine's own view of the run: calls in bytes, nothing remembered."""
        return NativeRuntime(self._calls)

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """Logs for this run; silent while the run is replayed."""
        if self._logger is None:
            self._logger = _OncePerRun(_log, {"calls": self._calls})
        return self._logger

    # ------------------------------------------------------------------ time, ids, chance

    def now(self) -> datetime:
        """The time of the event being handled (aware, UTC): the same on replay."""
        return moment(self._calls.loop.now)

    def uuid(self) -> UUID:
        """An id that no other run and no other call gets; the same on replay."""
        self._drawn += 1
        return UUID(bytes=self._seed(f"uuid {self._drawn}")[:16], version=4)

    @property
    def random(self) -> random.Random:
        """Chance that is the same on replay."""
        if self._random is None:
            self._random = random.Random(self._seed("random"))  # noqa: S311
        return self._random

    def _seed(self, what: str) -> bytes:
        run, loop = self._calls.run, self._calls.loop
        text = f"{run.definition}\n{run.id}\n{loop.began}\n{what}"
        return blake2b(text.encode(), digest_size=32).digest()

    # ------------------------------------------------------------------ steps, waits

    def step(
        self, step: Step[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R]:
        """Call a step: the same as `step(*args)`. Raises the step's failure: a class of yours by
        its kind, else StepFailed; TimedOut when its last attempt took too long."""
        return step(*args, **kwargs)

    async def sleep(self, delay: Duration | datetime, /) -> None:
        """Sleep durably, for a duration or until an aware datetime; not at all where that is
        over: a time that has passed, a duration of 0 or less."""
        calls = self._calls
        call = Call(calls.named("sleep"), WAIT, due=self._due(delay))
        await await_first(calls, (call,))

    async def wait(self, signal: Signal[T], /, *, timeout: Duration | None = None) -> T:
        """The signal's first value in this run; at once if it came before.

        Raises TimedOut when it has not come in time; None, 0 or less = no limit.
        """
        if self._facts is not None and signal.name in self._facts:
            self._calls.answered()
            value: T = self._facts[signal.name]
            return value
        _, payload = await self._asked(signal, "wait", timeout)
        value = read_in(self._calls, signal.read, payload)
        self._learned(signal, value)
        return value

    async def receive(self, channel: Channel[T], /, *, timeout: Duration | None = None) -> T:
        """The channel's next message. Raises TimedOut; None, 0 or less = no limit."""
        _, payload = await self._asked(channel, "receive", timeout)
        value: T = read_in(self._calls, channel.read, payload)
        return value

    def _learned(self, signal: Any, value: Any) -> None:
        if self._facts is None:
            self._facts = {}
        self._facts[signal.name] = value

    def _asked(self, source: Any, verb: str, timeout: Duration | None) -> CallFuture:
        # No coroutine: what waits, may do so for days, and in great numbers.
        calls = self._calls
        limit = 0 if timeout is None else remaining(timeout, "timeout")
        due = calls.loop.now + limit if limit else None
        call = Call(calls.named(f"{verb}:{source.base}"), WAIT, signal=source.name, due=due)
        return await_first(calls, (call,))

    @overload
    async def select(self, a: Case[A], b: Case[B], /) -> A | B: ...
    @overload
    async def select(self, a: Case[A], b: Case[B], c: Case[C], /) -> A | B | C: ...
    @overload
    async def select(self, a: Case[A], b: Case[B], c: Case[C], d: Case[D], /) -> A | B | C | D: ...
    @overload
    async def select(self, *cases: Case[T]) -> T: ...
    async def select(self, *cases: Any) -> Any:
        """Whatever case comes first: a Signal, a Channel, On(…), After(…); its value.

        Signals received already win, in case order, then times that are over (D-22). Raises
        NoCases.
        """
        known = first_of(cases, self._facts or {})
        if known is not None:
            self._calls.answered()
            return known.value
        calls = self._calls
        name = calls.named("select")
        asked = [
            Call(
                f"{name}.{index}", WAIT, index=index, signal=source.name if source else None,
                due=None if moment is None else self._due(moment),
            )
            for index, (source, moment) in enumerate(map(taken, cases))
        ]  # fmt: skip
        index, payload = await await_first(calls, asked)
        return self._value(cases[index], payload)

    def _value(self, case: Any, payload: Any) -> Any:
        source, moment = taken(case)
        then = getattr(case, "then", None)
        if source is None:
            assert moment is not None
            return None if then is None else then()
        value = read_in(self._calls, source.read, payload)
        if isinstance(source, Signal):
            self._learned(source, value)
        return value if then is None else then(value)

    def _due(self, delay: Duration | datetime) -> int:
        if isinstance(delay, datetime):
            return since_epoch(aware(delay))
        return self._calls.loop.now + remaining(delay, "delay")

    # ------------------------------------------------------------------ other runs

    @overload
    def child(
        self, definition: Definition[None, O], /, *, id: str | None = ...
    ) -> Coroutine[Any, Any, O]: ...
    @overload
    def child(
        self, definition: Definition[I, O], input: I, /, *, id: str | None = ...
    ) -> Coroutine[Any, Any, O]: ...
    def child(
        self, definition: Definition[Any, Any], input: object = None, /, *, id: str | None = None
    ) -> Coroutine[Any, Any, Any]:
        """Start another run, or join the one of this id, and wait for its output.

        The id is derived from this run and the call unless given. One that is there already keeps
        its own input. Raises the child's failure: its own class, TimedOut, Canceled, RunFailed.
        When this call is cancelled (this run is, its time is over, or its own code does it), a
        child that was created for it is asked to cancel too; one that it joined goes on.
        """
        return call_child(self._calls, CHILD, definition, input, id)

    @overload
    def spawn(
        self, definition: Definition[None, Any], /, *, id: str | None = ...
    ) -> Coroutine[Any, Any, str]: ...
    @overload
    def spawn(
        self, definition: Definition[I, Any], input: I, /, *, id: str | None = ...
    ) -> Coroutine[Any, Any, str]: ...
    def spawn(
        self, definition: Definition[Any, Any], input: object = None, /, *, id: str | None = None
    ) -> Coroutine[Any, Any, str]:
        """Start a run that goes on by itself, also after this one's end; its id, once it is there.
        One that is there already is success."""
        return call_child(self._calls, SPAWN, definition, input, id)

    # ------------------------------------------------------------------ many at a time

    @overload
    async def map(
        self, fn: Callable[[T], Awaitable[R]], items: Iterable[T], /, *, concurrency: int = ...,
        on_failure: Literal["raise"] = "raise",
    ) -> list[R]: ...  # fmt: skip
    @overload
    async def map(
        self, fn: Callable[[T], Awaitable[R]], items: Iterable[T], /, *, concurrency: int = ...,
        on_failure: Literal["collect"],
    ) -> list[R | Failure]: ...  # fmt: skip
    async def map(
        self, fn: Callable[[T], Awaitable[R]], items: Iterable[T], /, *, concurrency: int = 100,
        on_failure: Literal["raise", "collect"] = "raise",
    ) -> list[Any]:  # fmt: skip
        """`fn` of every item, at most `concurrency` at a time; results in the order of the items.

        The first failure cancels the rest and is raised; on_failure="collect" puts failures in
        the places of their items instead: StepFailed, a class of yours, TimedOut, whatever the
        call would raise. Raises InvalidOptions.
        """
        if on_failure not in ("raise", "collect"):
            raise InvalidOptions(f'on_failure {on_failure!r}: use "raise" or "collect"')
        return await map_items(fn, items, concurrency, collect=on_failure == "collect")

    def as_completed(self, awaitables: Iterable[Awaitable[T]], /) -> AsyncIterator[T]:
        """Outcomes as they come (`async for`); ties in the order of the arguments."""
        return completed(awaitables)

    async def wait_any(self, awaitables: Iterable[Awaitable[T]], /) -> tuple[int, T]:
        """(place, outcome) of the first to end; the others are cancelled. Raises its failure."""
        return await any_of(awaitables)

    def saga(self) -> AbstractAsyncContextManager[Undo]:
        """`async with ctx.saga() as saga:`: what it did is undone if it is left by an exception
        or a cancel, in reverse order of completion; then the exception goes on."""
        return Undo(self.logger, self._calls)

    # ------------------------------------------------------------------ changes

    def continue_as_new(self, input: object = _NOT_GIVEN, /) -> NoReturn:
        """Begin the function anew in the same run, with this input: for runs without an end.

        What the run did before is forgotten, so that its history stays short; unread signals and
        messages stay, the deadline begins anew. Nothing after this call runs but `finally`. Raises
        InvalidRequest for an input that the function does not take; then nothing has happened.
        """
        calls = self._calls
        data = None if input is _NOT_GIVEN else written_in(calls, input)
        if self._workflow is not None:
            self._workflow.check_input(data, calls.deps.codec)
        raise ContinueAsNew(data)

    def patched(self, id: str, /) -> bool:
        """Whether this run takes the new way of a guarded change: true where it gets here for the
        first time live, false on the replay of a run that passed here before the change."""
        return self._calls.patched(id)


class _OncePerRun(logging.LoggerAdapter[logging.Logger]):
    """Says things once: not again when the run is replayed."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802
        calls: Calls = self.extra["calls"]  # type: ignore[index,assignment]
        return calls.recorded is None and self.logger.isEnabledFor(level)

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, Any]:
        run = self.extra["calls"].run  # type: ignore[index,union-attr]
        return f"{run.definition}/{run.id}: {msg}", kwargs
