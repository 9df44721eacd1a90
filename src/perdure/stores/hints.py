"""Hints: telling whoever listens in this process that something may be due or have mail.

Many reasons within one turn of the loop are one call. A hint is no promise: a listener whose loop
is gone is passed over, and a lost call costs a poll interval.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from perdure.stores.answers import Posted, PostedCall
from perdure.stores.rows import Message


class _Listener:
    """One subscription, on the loop it was made on."""

    __slots__ = ("call", "called", "loop", "posted")

    def __init__(self, call: Callable[[], None], posted: PostedCall | None) -> None:
        self.call: Callable[[], None] | None = call
        self.posted = posted
        self.loop = asyncio.get_running_loop()
        self.called = False

    def tell(self) -> None:
        if not self.called:
            self.called = True
            self.loop.call_soon(self._fire)

    def _fire(self) -> None:
        self.called = False
        if self.call is not None:
            self.call()

    def tell_posted(self, messages: Sequence[Message], answers: Sequence[Posted]) -> None:
        if self.posted is None:
            self.tell()
        else:
            self.loop.call_soon(self._fire_posted, messages, answers)

    def _fire_posted(self, messages: Sequence[Message], answers: Sequence[Posted]) -> None:
        if self.call is not None and self.posted is not None:
            self.posted(messages, answers)


class Hints:
    """The listeners of one store."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: list[_Listener] = []

    def __bool__(self) -> bool:
        """Whether anybody listens."""
        return bool(self._listeners)

    def subscribe(
        self, call: Callable[[], None], posted: PostedCall | None = None
    ) -> Callable[[], None]:
        """Call soon after each `give`, until what this returns is called. `posted`, where given,
        is called instead with the messages that this process posted, each batch by itself."""
        listener = _Listener(call, posted)
        self._listeners.append(listener)

        def end() -> None:
            listener.call = None
            if listener in self._listeners:
                self._listeners.remove(listener)

        return end

    def give(self) -> None:
        """Something may be due or have mail. On the loop's thread."""
        for listener in self._there():
            listener.tell()

    def give_posted(self, messages: Sequence[Message], answers: Sequence[Posted]) -> None:
        """These messages were posted just now, some of them with success."""
        for listener in self._there():
            listener.tell_posted(messages, answers)

    def _there(self) -> list[_Listener]:
        """The listeners whose loops are."""
        self._listeners = [one for one in self._listeners if not one.loop.is_closed()]
        return list(self._listeners)

    def end_all(self) -> None:
        """The store closes: nobody is called any more."""
        for listener in self._listeners:
            listener.call = None
        self._listeners.clear()
