"""Virtual time that stands still while a thread works for the loop: one of SQLite's, or of a step.

The threads are counted, so that nothing is waited for that is not under way, and nothing that is
under way is overtaken by time, however slow the machine.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from unittest import mock

from perdure.engine.handlers.threads import Threads
from perdure.stores.sqlite.writer import Writer
from perdure.testing.virtual import VirtualLoop

T = TypeVar("T")

#: Seconds after which it is looked again whether a thread still works: it says when it has ended.
AGAIN = 1.0


class CountingLoop(VirtualLoop):
    """`at_work`: the calls that threads were given and have not answered."""

    def __init__(self) -> None:
        super().__init__()
        self.at_work = 0
        self.before_jump = self._stays

    def _stays(self, due: float | None) -> bool:
        """Whether a thread is at work; if so, until something is heard, which stays to be read."""
        if self.at_work:
            selectors.DefaultSelector.select(self._selector, AGAIN)  # type: ignore[attr-defined]
            return True
        return False

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        self.at_work += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self.answered)
        return future

    def answered(self, _: object = None) -> None:
        self.at_work -= 1


def run(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` in such time."""
    with counted(), asyncio.Runner(loop_factory=CountingLoop) as runner:
        return runner.run(work)


@contextmanager
def counted() -> Iterator[None]:
    """What is given to threads without the loop's knowledge is told to it."""
    hand_over, answer, submit = Writer._hand_over, Writer._answer, Threads.submit

    def handing_over(writer: Writer, *args: Any) -> None:
        _loop().at_work += 1
        hand_over(writer, *args)

    def answering(writer: Writer, *args: Any) -> None:
        _loop().answered()
        answer(writer, *args)

    def submitting(threads: Threads, call: Callable[[], Any]) -> Any:
        loop = _loop()
        loop.at_work += 1
        future = submit(threads, call)
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(loop.answered))
        return future

    with (
        mock.patch.object(Writer, "_hand_over", handing_over),
        mock.patch.object(Writer, "_answer", answering),
        mock.patch.object(Threads, "submit", submitting),
    ):
        yield


def _loop() -> CountingLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, CountingLoop)
    return loop
