"""Runner: what a task runs in which attempts are made.

A coroutine that awaits another keeps its frame meanwhile, and a frame takes more memory than what
most steps wait with. So nothing here awaits an attempt: what runs in the task says at its end what
is to run next, and only that is kept. First is the part that is everybody's (see shared_runner),
then an attempt that waits, then what its run has to do, and so on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeAlias

from perdure.engine.dispatcher import ENDINGS
from perdure.engine.stepping import OVER, Waiting

#: What is to run next in a task: an attempt that waits, or a coroutine that gives what is next.
Next: TypeAlias = "Waiting | Coroutine[Any, Any, Next] | None"


class Runner(Coroutine[Any, Any, None]):
    """A task's coroutine: it drives `part`, and what comes after that."""

    __slots__ = ("_part",)

    def __init__(self, part: Coroutine[Any, Any, Next]) -> None:
        self._part: Next = part

    def send(self, value: Any) -> Any:
        """See Coroutine.send."""
        part: Any = self._part
        try:
            given = part.send(value)
        except StopIteration as end:
            following = end.value
        except BaseException as error:
            _broken(part, error)
            following = None
        else:
            if given is not OVER:
                return given
            following = part.runners.heard(part)
        return self._follow(following)

    def throw(self, error: Any, value: Any = None, trace: Any = None) -> Any:
        """See Coroutine.throw; tasks throw exceptions, not their types."""
        part: Any = self._part
        try:
            given = part.throw(error)
        except StopIteration as end:
            following = end.value
        except BaseException as found:
            _broken(part, found)
            following = None
        else:
            if given is not OVER:
                return given
            following = part.runners.heard(part)
        return self._follow(following)

    def close(self) -> None:
        """See Coroutine.close."""
        part, self._part = self._part, None
        if part is not None:
            part.close()

    def __await__(self) -> Any:
        raise TypeError("a task runs this: it is not awaited")

    def __del__(self) -> None:
        self.close()  # as a coroutine does: what waits here is closed in its own context

    def _follow(self, following: Next) -> Any:
        """Begin with what is next; what it waits for."""
        while following is not None:
            self._part = following
            if type(following) is Waiting:
                given, following.awaited = following.awaited, None
                return given
            try:
                return following.send(None)
            except StopIteration as end:
                following = end.value
        self._part = None
        raise StopIteration


def _broken(part: Any, error: BaseException) -> None:
    """Raise what went through an attempt, or through what is no attempt; else its run is told."""
    if type(part) is not Waiting or isinstance(error, (*ENDINGS, asyncio.CancelledError)):
        raise error
    part.runners.cannot(part.order, error)
