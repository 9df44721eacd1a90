"""Runner: what a task runs in which attempts are made.

A coroutine that awaits another keeps its frame meanwhile, and a frame takes more memory than what
most steps wait with. So nothing here awaits an attempt: what runs in the task says at its end what
is to run next, and only that is kept. First is the part that is everybody's (see shared_runner),
then an attempt that waits, then a wait for the row that says what is next, and so on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any, Final

from perdure.engine.attempts.ends import ENDINGS
from perdure.engine.attempts.part import OVER, Part
from perdure.engine.attempts.stepping import Waiting


class Runner(Coroutine[Any, Any, None]):
    """A task's coroutine: it drives `part`, and what follows that."""

    __slots__ = ("_part",)

    def __init__(self, part: Coroutine[Any, Any, Part | None]) -> None:
        self._part: Coroutine[Any, Any, Part | None] | Part | None = part

    def send(self, value: Any) -> Any:
        """See Coroutine.send."""
        part: Any = self._part
        return self._drive(part, part.send, value)

    def throw(self, error: Any, value: Any = None, trace: Any = None) -> Any:
        """See Coroutine.throw; tasks throw exceptions, not their types."""
        part: Any = self._part
        return self._drive(part, part.throw, error)

    def _drive(self, part: Any, way: Callable[[Any], Any], what: Any) -> Any:
        try:
            given = way(what)
        except StopIteration as end:
            following = end.value
        except BaseException as error:
            following = self._broken(error)
        else:
            if given is not OVER:
                return given
            following = part.following()
        return self._begin(following)

    def _begin(self, following: Part | None) -> Any:
        self._part = following
        if following is None:
            raise StopIteration
        return following.first()

    def _broken(self, error: BaseException) -> Part | None:
        """What runs has raised: raise what went through an attempt, or came from what is none. Of
        what else an attempt cannot go on with its run is told, and the task ends."""
        part, self._part = self._part, None
        if type(part) is not Waiting or isinstance(error, (*ENDINGS, asyncio.CancelledError)):
            raise error
        part.whose.cannot(part.order, error)
        return None

    def close(self) -> None:
        """See Coroutine.close."""
        part, self._part = self._part, None
        if part is not None:
            part.close()

    def __getattr__(self, name: str) -> Any:
        """`cr_frame`, `cr_running`, `__qualname__` and what else is asked of a task's coroutine, to
        show it or to know how it stands: as the coroutine that waits here."""
        if name == "_part":  # it was never made, since an interrupt came: nothing stands here
            return None
        part = self._part
        stands = part if isinstance(part, CoroutineType) else getattr(part, "steps", _ENDED)
        return getattr(stands, name)

    def __await__(self) -> Any:
        raise TypeError("a task runs this: it is not awaited")

    def __del__(self) -> None:
        self.close()  # as a coroutine does: what waits here is closed in its own context


async def _nothing() -> None:
    pass


#: What a task's coroutine is where none waits.
_ENDED: Final = _nothing()
_ENDED.close()
