"""SharedRunner: the task in which attempts begin, those of all runs in turn.

Most steps of most runs are over before they wait for anything, and a task for each of them, or for
each run, would cost more than they do. So they begin in one task. An attempt that does wait keeps
that task from then on: it belongs to its run (see Runners.heard), and another one goes on with
what else is to begin.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from perdure.engine.attempts.part import Part
from perdure.engine.attempts.runner import Runner

if TYPE_CHECKING:
    from perdure.engine.attempts.stepping import Waiting
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.runners import Runners

#: For how long attempts begin one after another without giving the loop to others, in seconds, and
#: of how many runs.
TURN_SECONDS: Final = 0.005
TURN_RUNS: Final = 64
#: How many tasks are made at once, at most.
MOST_AT_ONCE: Final = 64


def is_spoilt(task: asyncio.Task[Any]) -> bool:
    """Whether somebody has cancelled the task, in which nothing is to begin any more then."""
    return task.cancelling() > 0 or bool(spoils(task))


#: Whether the next wait in a task raises CancelledError: up to Python 3.12 also where the
#: cancelling was taken back.
spoils: Callable[[asyncio.Task[Any]], Any] = attrgetter("_must_cancel")


class SharedRunner:
    """Told which runs have attempts that may begin (`take`). Its tasks know nothing of whoever
    asked: they have the context variables of the engine's opening."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._queue: deque[Runners] = deque()
        #: The tasks that belong to no run, and what the one waits for that has nothing to do.
        self._free: set[asyncio.Task[None]] = set()
        self._idle: asyncio.Future[None] | None = None
        #: How many tasks to have when the next attempt waits.
        self._burst = 1
        self._context = copy_context()

    def open(self) -> None:
        """The engine opens, and its attempts have the context variables of this moment."""
        self._context = copy_context()

    def take(self, runners: Runners) -> None:
        """A run has attempts that may begin. They do in a moment, not before this returns."""
        if not runners.queued:
            runners.queued = True
            self._queue.append(runners)
        if self._idle is not None:
            if not self._idle.done():
                self._idle.set_result(None)
        elif not self._free:
            self._spawn()

    def _spawn(self) -> None:
        work, context = Runner(self._serve()), self._context.copy()
        self._free.add(self._holder.tasks.spawn(work, self, context, "perdure attempts"))

    async def _serve(self) -> Part | None:
        task, queue = asyncio.current_task(), self._queue
        assert task is not None
        try:
            while queue or await self._wait():
                if (waits := self._turn(task)) is not None:
                    return waits
                if is_spoilt(task):
                    break  # what began in it cancelled it: it is used no more
                if queue:
                    await asyncio.sleep(0)
        finally:
            self.ended(task)
        return None

    def _turn(self, task: asyncio.Task[None]) -> Waiting | None:
        """Let attempts begin, until others have the loop. Where one waits the task is its run's
        from now on."""
        queue, time = self._queue, asyncio.get_running_loop().time
        until = time() + TURN_SECONDS
        for _ in range(TURN_RUNS):
            runners = queue.popleft()
            runners.queued = False
            try:
                waits = runners.advance(task, until, time)
            except BaseException:  # it ends the process, or that is caught somewhere
                runners.ended(task)
                raise
            if waits is not None:
                self._bind(task, runners)
                return waits
            self._burst = 1
            if not queue or runners.queued or spoils(task):
                break  # a run that is not through has had its turn, too
        return None

    async def _wait(self) -> bool:
        """Until some run has attempts; False: another task waits for that already."""
        if self._idle is not None:
            return False
        try:
            while not self._queue:  # another may have been quicker
                self._idle = asyncio.get_running_loop().create_future()
                await self._idle
        finally:
            self._idle = None
        return True

    def _bind(self, task: asyncio.Task[None], runners: Runners) -> None:
        """The task is the run's from now on, and others go on: the more, the more attempts in a
        row have waited, since each of those keeps one."""
        self._holder.tasks.attend(task, runners)
        self._free.discard(task)
        more = len(self._queue) + len(runners.orders)
        if runners.orders:
            self.take(runners)
        for _ in range(min(more, self._burst) - len(self._free)):
            self._spawn()
        self._burst = min(2 * self._burst, MOST_AT_ONCE)

    def ended(self, task: asyncio.Task[None]) -> None:
        """A task ends, or has: one that was cancelled before it began says nothing itself."""
        self._free.discard(task)
        if self._queue and not self._free and not self._holder.stopping:
            self._spawn()
