"""Runner: what a task runs in which attempts are made.

A coroutine that awaits another keeps its frame meanwhile, and a frame takes more memory than what
most steps wait with. So nothing here awaits an attempt: what runs in the task says at its end what
is to run next, and only that is kept. First is the part that is everybody's (see shared_runner),
then an attempt that waits, then what its run has to do, and so on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
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
        assert self._part is not None
        return self._go_on(self._part.send, value)

    def throw(self, error: Any, value: Any = None, trace: Any = None) -> Any:
        """See Coroutine.throw; tasks throw exceptions, not their types."""
        assert self._part is not None
        return self._go_on(self._part.throw, error)

    def close(self) -> None:
        """See Coroutine.close."""
        part, self._part = self._part, None
        if part is not None:
            part.close()

    def __await__(self) -> Any:
        raise TypeError("a task runs this: it is not awaited")

    def __del__(self) -> None:
        self.close()  # as a coroutine does: what waits here is closed in its own context

    def _go_on(self, resume: Callable[[Any], Any], value: Any) -> Any:
        """Drive the part, and what follows it, until one of them waits."""
        while True:
            part = self._part
            try:
                given = resume(value)
            except StopIteration as end:
                following = end.value
            except (*ENDINGS, asyncio.CancelledError):
                raise
            except BaseException as error:
                if type(part) is not Waiting:
                    raise
                part.runners.cannot(part.order, error)
                following = None
            else:
                if given is not OVER:
                    return given
                assert type(part) is Waiting
                following = part.runners.heard(part)
            self._part = following
            if following is None:
                break
            if type(following) is Waiting:
                return following.first()
            resume, value = following.send, None
        raise StopIteration
