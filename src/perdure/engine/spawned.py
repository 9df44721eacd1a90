"""Spawned: the tasks of an engine, each referenced strongly until it ends, its error logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeAlias

_log = logging.getLogger("perdure.engine")

Ended: TypeAlias = Callable[[asyncio.Task[Any]], None]


class Spawned:
    """What runs beside the runs, and what their attempts run in."""

    def __init__(self) -> None:
        #: With what else is to be told of its end.
        self._tasks: dict[asyncio.Task[Any], Ended | None] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(
        self,
        work: Coroutine[Any, Any, Any],
        ended: Ended | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[Any]:
        """Run as a task, which begins when this has returned. `ended` is told of its end."""
        # Not by the loop, whose factory may be one that lets tasks begin at once.
        task = asyncio.Task(work, loop=asyncio.get_running_loop(), context=context)
        self._tasks[task] = ended
        task.add_done_callback(self._ended)
        return task

    def attend(self, task: asyncio.Task[Any], ended: Ended) -> None:
        """See that this is told of the task's end."""
        self._tasks[task] = ended

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

    def _ended(self, task: asyncio.Task[Any]) -> None:
        ended = self._tasks.pop(task)
        if ended is not None:
            ended(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a task of the engine failed", exc_info=error)
