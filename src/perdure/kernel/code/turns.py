"""Turns: who may touch what a workflow's code waits for, and when.

While nothing is decided and no code runs, whatever reaches a workflow's loop comes from outside:
from another thread, or from a step that shares an object with its workflow. A replay would not
see it. The loop refuses that by its turn alone; that another thread comes while the code runs is
seen by the futures that the loop gives out (of events, queues, locks too), before they change.
"""

from __future__ import annotations

import asyncio
from asyncio.events import _get_running_loop
from typing import Any, Final

from perdure.kernel.code.forbidden import reached_into

#: Whose turn it is on a loop: nobody's, the engine's, the workflow's code's.
AT_REST: Final = 0
DECIDING: Final = 1
RUNNING: Final = 2


class OwnFuture(asyncio.Future[Any]):
    """A future that a workflow's code made: it is released by that code alone."""

    __slots__ = ()

    def set_result(self, result: Any) -> None:
        """Raises ForbiddenInWorkflow from outside."""
        self._check()
        super().set_result(result)

    def set_exception(self, exception: type | BaseException) -> None:
        """Raises ForbiddenInWorkflow from outside."""
        self._check()
        super().set_exception(exception)

    def cancel(self, msg: Any = None) -> bool:
        """Raises ForbiddenInWorkflow from outside."""
        self._check()
        return super().cancel(msg)

    def _check(self) -> None:
        loop: Any = self.get_loop()
        if loop.turn == DECIDING or not loop.alive:
            return
        if loop.turn == AT_REST or _get_running_loop() is not loop:
            raise reached_into()
