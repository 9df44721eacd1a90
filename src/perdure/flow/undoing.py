"""Undo: what a workflow has done, taken back in reverse order of completion when it fails.

A step that is under way when the failure or the cancel comes is waited for: its effect may yet
happen, and is then undone with the rest (stop before undo).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from perdure.model.errors import Failure

if TYPE_CHECKING:
    from perdure.flow.step import Step

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

Undoing = Callable[[], Coroutine[Any, Any, Any]]


class Undo:
    """`async with ctx.saga() as saga:`; leaving it by an exception or a cancel undoes."""

    def __init__(self, logger: logging.LoggerAdapter[logging.Logger]) -> None:
        self._logger = logger
        self._undos: list[Undoing] = []
        #: Undos that failed for good: somebody must look.
        self.failed: list[Failure] = []

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
        try:
            result = await asyncio.shield(task)
        except asyncio.CancelledError:
            # It may yet take effect: wait how it ends, and undo it with the rest.
            if not task.cancelled():
                with suppress(Failure):
                    self._undos.append(partial(undo, await task))
            raise
        self._undos.append(partial(undo, result))
        return result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, GeneratorExit):
            return
        while self._undos:
            try:
                await self._undos.pop()()
            except Failure as failure:
                self.failed.append(failure)
                self._logger.error("an undo failed and somebody must look: %s", failure)
