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
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from perdure.engine.dispatcher import ENDINGS
from perdure.engine.stepping import OVER, Waiting

if TYPE_CHECKING:
    from perdure.engine.runners import Runners


class Part(Protocol):
    """What runs in a task. `send`, `throw` and `close` do as a coroutine's, but give OVER at the
    end."""

    def first(self) -> Any:
        """What it waits for, to begin with."""

    def send(self, value: Any, /) -> Any:
        """What it waited for is there: what it waits for next."""

    def throw(self, error: BaseException, /) -> Any:
        """Raise this where it waits: what it waits for next."""

    def close(self) -> None:
        """It does not go on."""

    def following(self) -> Part | None:
        """It is over: what is next. None: the task ends."""


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
        part.runners.cannot(part.order, error)
        return None

    def close(self) -> None:
        """See Coroutine.close."""
        part, self._part = self._part, None
        if part is not None:
            part.close()

    def __getattr__(self, name: str) -> Any:
        """`cr_frame`, `cr_running`, `__qualname__` and what else is asked of a task's coroutine, to
        show it or to know how it stands: as the coroutine that waits here."""
        part = self._part
        stands = part if isinstance(part, CoroutineType) else getattr(part, "steps", _ENDED)
        return getattr(stands, name)

    def __await__(self) -> Any:
        raise TypeError("a task runs this: it is not awaited")

    def __del__(self) -> None:
        self.close()  # as a coroutine does: what waits here is closed in its own context


class ForRow(msgspec.Struct, eq=False):
    """Waits, in a task of a run's, until its row under way is durable: a Part."""

    runners: Runners
    task: asyncio.Task[None]
    future: asyncio.Future[None]

    def wake(self) -> None:
        """Look again."""
        if not self.future.done():
            self.future.set_result(None)

    def first(self) -> Any:
        """See Part.first."""
        return next(self.future.__await__())

    def send(self, value: Any) -> Any:
        """See Part.send."""
        if self.runners.still_waits:
            self.future = asyncio.get_running_loop().create_future()
            return self.first()
        self.runners.waiter = None
        return OVER

    def throw(self, error: BaseException) -> Any:
        """See Part.throw."""
        self.close()
        self.runners.start()  # one of them may have been meant for this runner
        raise error

    def close(self) -> None:
        """See Part.close."""
        self.runners.waiter = None

    def following(self) -> Part | None:
        """See Part.following."""
        return self.runners.next_part(self.task)


async def _nothing() -> None:
    pass


#: What a task's coroutine is where none waits.
_ENDED: Final = _nothing()
_ENDED.close()
