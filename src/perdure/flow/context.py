"""Context: what a workflow's code can ask for besides calling steps.

Everything here is recorded, or follows from what is: time, ids and chance too. Decides nothing;
the code machine does.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Coroutine, Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar
from uuid import UUID

from perdure.flow.selecting import first_of, taken
from perdure.flow.signal import Channel, Signal, aware
from perdure.kernel.code.call import WAIT, Call
from perdure.kernel.code.calls import Calls
from perdure.model.durations import Duration, microseconds

if TYPE_CHECKING:
    from perdure.flow.step import Step

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_log = logging.getLogger("perdure.workflow")


class Context:
    """A run, seen from inside its workflow's function."""

    __slots__ = ("_calls", "_drawn", "_facts", "_logger", "_random")

    def __init__(self, calls: Calls, /) -> None:
        self._calls = calls
        #: What signals said, for good.
        self._facts: dict[str, Any] = {}
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
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """Logs for this run; silent while the run is replayed."""
        if self._logger is None:
            self._logger = _OncePerRun(_log, {"calls": self._calls})
        return self._logger

    # ------------------------------------------------------------------ time, ids, chance

    def now(self) -> datetime:
        """The time of the event being handled (aware, UTC): the same on replay."""
        return _EPOCH + timedelta(microseconds=self._calls.loop.now)

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
        """Call a step: the same as `step(*args)`."""
        return step(*args, **kwargs)

    async def sleep(self, delay: Duration | datetime, /) -> None:
        """Sleep durably, for a duration or until an aware datetime."""
        calls = self._calls
        call = Call(calls.named("sleep"), WAIT, due=self._due(delay))
        await calls.await_first((call,))

    async def wait(self, signal: Signal[T], /, *, timeout: Duration | None = None) -> T:  # noqa: ASYNC109
        """The signal's first value in this run; at once if it came before.

        Raises TimedOut when it has not come in time; None or 0 = no limit.
        """
        facts = self._facts
        if signal.name in facts:
            self._calls.answered()
            value: T = facts[signal.name]
            return value
        value = facts[signal.name] = await self._next(signal, "wait", timeout)
        return value

    async def receive(self, channel: Channel[T], /, *, timeout: Duration | None = None) -> T:  # noqa: ASYNC109
        """The channel's next message. Raises TimedOut."""
        value: T = await self._next(channel, "receive", timeout)
        return value

    async def _next(self, source: Any, verb: str, timeout: Duration | None) -> Any:  # noqa: ASYNC109
        calls = self._calls
        limit = None if timeout is None else microseconds(timeout, "timeout")
        due = calls.loop.now + limit if limit else None
        call = Call(calls.named(f"{verb}:{source.base}"), WAIT, signal=source.name, due=due)
        _, payload = await calls.await_first((call,))
        return source.read(payload)

    async def select(self, *cases: Any) -> Any:
        """Whatever case comes first: a Signal, a Channel, On(…), After(…); its value.

        Signals received already win, in case order, then times that are over (D-22). Raises
        NoCases.
        """
        known = first_of(cases, self._facts)
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
        index, payload = await calls.await_first(asked)
        return self._value(cases[index], payload)

    def _value(self, case: Any, payload: Any) -> Any:
        source, moment = taken(case)
        then = getattr(case, "then", None)
        if source is None:
            assert moment is not None
            return None if then is None else then()
        value = source.read(payload)
        if isinstance(source, Signal):
            self._facts[source.name] = value
        return value if then is None else then(value)

    def _due(self, delay: Duration | datetime) -> int:
        if isinstance(delay, datetime):
            return (aware(delay) - _EPOCH) // timedelta(microseconds=1)
        return self._calls.loop.now + microseconds(delay, "delay")

    # ------------------------------------------------------------------ changes

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
