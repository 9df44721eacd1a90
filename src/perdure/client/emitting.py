"""Emitting: events of the program's own, which start sagas and are heard by listeners.

An event is accepted once every run that it starts is durable; it waits for none of them. Whoever
listens hears of it after that, and whatever it does hurts nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from perdure.client.telling import CLOSING
from perdure.engine.listeners import Listeners, Spawn
from perdure.model.definition import Definition
from perdure.model.errors import InvalidRequest
from perdure.saga.builder import Saga

#: Starts a run of a saga with an event, under an id; returns once that is durable.
Start = Callable[[Saga[Any], object, str], Awaitable[object]]
#: Whose classes are no events of a program.
_NOT_OWN: Final = ("perdure", "builtins")


class Emitting:
    """The triggers and listeners of one engine."""

    def __init__(
        self, definitions: Iterable[Definition[Any, Any]], start: Start, spawn: Spawn
    ) -> None:
        self._sagas = [one for one in definitions if isinstance(one, Saga) and one.triggers]
        self._start = start
        self._listeners = Listeners(spawn)

    def listen(self, kind: type[Any], call: Callable[[Any], Any]) -> None:
        """Call with every event of this class from now on."""
        self._listeners.add(kind, call)

    async def emit(self, event: object, id: str) -> None:
        """Start what the event starts, each saga with a run of this id; one that is there is
        joined. Raises what a start raises, after the others were started."""
        wanted = [saga for saga in self._sagas if isinstance(event, saga.triggers)]
        starting = [self._start(saga, event, id) for saga in wanted]
        errors = [
            done
            for done in await asyncio.gather(*starting, return_exceptions=True)
            if isinstance(done, BaseException)
        ]
        if errors:
            raise errors[0]
        self._listeners.tell(event)

    async def close(self) -> None:
        """Let the listeners hear what is left, for a while."""
        await self._listeners.close(CLOSING)


def is_emitted(kind: Any) -> bool:
    """Whether objects of this class can be events of a program's own."""
    return isinstance(kind, type) and kind.__module__.partition(".")[0] not in _NOT_OWN


def checked_event(event: Any) -> object:
    """An event that can be emitted. Raises InvalidRequest."""
    if event is None or isinstance(event, type):
        raise InvalidRequest(f"emit({event!r}): give an event, an object of a class of yours")
    return event
