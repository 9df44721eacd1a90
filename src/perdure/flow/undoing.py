"""Undo: what a workflow has done, taken back in reverse order of completion when it fails.

A step that is under way when the failure or the cancel comes is waited for: its effect may yet
happen, and is then undone with the rest (stop before undo). A cancel that comes while it is being
undone changes nothing but the end, and undos are tried again by their own policies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar

from perdure.kernel.code.call import CLEANING
from perdure.kernel.code.stuck import ContinueAsNew, Evicted
from perdure.model.errors import Failure

if TYPE_CHECKING:
    from perdure.flow.step import Step

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

#: Ways out of a saga by which nothing has failed.
_NO_FAILURE: Final = (GeneratorExit, Evicted, ContinueAsNew)

Undoing = Callable[[], Coroutine[Any, Any, Any]]


class Undo:
    """`async with ctx.saga() as saga:`; leaving it by an exception or a cancel undoes."""

    def __init__(self, logger: logging.LoggerAdapter[logging.Logger]) -> None:
        self._logger = logger
        self._undos: list[Undoing] = []
        #: Undos that failed for good: somebody must look.
        self.failed: list[Exception] = []

    def undo(self, step: Step[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Undo by this call, should it come to that."""
        self._undos.append(partial(step, *args, **kwargs))

    async def run(
        self,
        step: Callable[[T], Coroutine[Any, Any, R]],
        input: T,
        /,
        *,
        undo: Callable[[R], Coroutine[Any, Any, Any]],
    ) -> R:
        """Run a step whose undo takes its result. Raises what the step raises."""
        task = asyncio.ensure_future(step(input))
        canceled = await _ended(task)
        if canceled is None:
            result = await task
            self._undos.append(partial(undo, result))
            return result
        # It may have taken effect all the same: then it is undone with the rest.
        if not task.cancelled():
            with suppress(Failure):
                self._undos.append(partial(undo, task.result()))
        raise canceled

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, _NO_FAILURE):
            return
        canceled = await _ended(asyncio.ensure_future(self._undo_all()))
        if canceled is not None:
            raise canceled

    async def _undo_all(self) -> None:
        CLEANING.set(True)
        while self._undos:
            try:
                await self._undos.pop()()
            except Exception as failure:
                self.failed.append(failure)
                self._logger.error("an undo failed and somebody must look: %s", failure)


async def _ended(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait until a task has ended, whatever is cancelled meanwhile; the last cancel that came."""
    canceled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            canceled = error
    return canceled
