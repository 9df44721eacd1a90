"""Spawned: the tasks of an engine, each referenced strongly until it ends, its error logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from functools import partial
from typing import Any, Protocol

_log = logging.getLogger("perdure.engine")


class Told(Protocol):
    """Who is told that a task has ended."""

    def ended(self, task: asyncio.Task[Any], /) -> None:
        """It has."""


class Spawned:
    """What runs beside the runs, and what their attempts run in."""

    def __init__(self) -> None:
        #: With who else is to be told of its end.
        self._tasks: dict[asyncio.Task[Any], Told | None] = {}
        #: What tells it: one for all of them.
        self._ended = partial(_ended, self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(
        self,
        work: Coroutine[Any, Any, Any],
        told: Told | None = None,
        context: Context | None = None,
        name: str | None = None,
    ) -> asyncio.Task[Any]:
        """Run as a task, which begins when this has returned. `told` of its end, in its context."""
        # Not by the loop, whose factory may be one that lets tasks begin at once.
        loop = asyncio.get_running_loop()
        task = asyncio.Task(work, loop=loop, context=context, name=name)
        self._tasks[task] = told
        task.add_done_callback(self._ended, context=context)
        return task

    def attend(self, task: asyncio.Task[Any], told: Told) -> None:
        """See that this is told of the task's end."""
        self._tasks[task] = told

    def over(self, task: asyncio.Task[Any]) -> None:
        """The task is at its very end, and nothing is to be told of it: a turn of the loop less."""
        self._tasks.pop(task, None)
        task.remove_done_callback(self._ended)

    async def end(self) -> None:
        """Ask all others to end, and wait a second for that."""
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)


def _ended(tasks: dict[asyncio.Task[Any], Told | None], task: asyncio.Task[Any]) -> None:
    told = tasks.pop(task)
    if told is not None:
        told.ended(task)
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("a task of the engine failed", exc_info=error)
