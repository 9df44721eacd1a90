"""Emitting: events of the program's own, which start sagas and are heard by listeners.

An event is accepted once every run that it starts is durable; it waits for none of them. Whoever
listens hears of it after that, and whatever it does hurts nobody.

An engine knows which sagas its events start: it was given them. A client asks the store, where each
saga says the names of the classes that start it: for processes that share no code, classes are
known by their names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from perdure.model.errors import InvalidRequest
from perdure.saga.builder import Saga
from perdure.stores.port import Store
from perdure.stores.rows import StoredDefinition

#: Starts a run of a saga with an event; returns once that is durable.
Start = Callable[[Saga[Any]], Awaitable[object]]
#: Whose classes are no events of a program.
_NOT_OWN: Final = ("perdure", "builtins")


class PublishedSagas:
    """The sagas of a store that say which events start them, as they were published last."""

    def __init__(self) -> None:
        #: By hash: what was read of those that are there.
        self._read: dict[str, Saga[Any]] = {}

    async def started_by(self, event: object, store: Store) -> list[Saga[Any]]:
        """Those that this event starts. Raises StoreError."""
        stored = await store.latest_definitions(Saga.kind)
        before, self._read = self._read, {}
        for one in stored:
            known = before.get(one.hash)
            self._read[one.hash] = known or Saga.recorded(one.source, one.hash, None)
        replaced = _replaced(stored, self._read)
        names = {kind.__name__ for kind in type(event).__mro__}
        return [
            saga
            for one in stored
            if one.name not in replaced
            and names.intersection((saga := self._read[one.hash]).started_by_names)
        ]


def _replaced(stored: Iterable[StoredDefinition], read: dict[str, Saga[Any]]) -> set[str]:
    """The names that are not used any more: a saga was renamed, or the renaming taken back."""
    published = {one.name: one.created for one in stored}
    replaced = set[str]()
    for one in stored:
        for alias in read[one.hash].aliases:
            if alias in published:
                older = published[alias] <= one.created
                replaced.add(alias if older else one.name)
    return replaced


def bound_to(event: object, sagas: Iterable[Saga[Any]]) -> list[Saga[Any]]:
    """Those of these sagas that an event starts."""
    return [saga for saga in sagas if saga.triggers and isinstance(event, saga.triggers)]


async def start_all(sagas: Iterable[Saga[Any]], start: Start) -> None:
    """Start a run of each. Raises what a start raises, after the others were started."""
    done = await asyncio.gather(*map(start, sagas), return_exceptions=True)
    for outcome in done:
        if isinstance(outcome, BaseException):
            raise outcome


def is_emitted(kind: Any) -> bool:
    """Whether objects of this class can be events of a program's own."""
    return isinstance(kind, type) and kind.__module__.partition(".")[0] not in _NOT_OWN


def checked_event(event: Any) -> object:
    """An event that can be emitted. Raises InvalidRequest."""
    if event is None or isinstance(event, type):
        raise InvalidRequest(f"emit({event!r}): give an event, an object of a class of yours")
    return event
