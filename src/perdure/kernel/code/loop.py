"""WorkflowLoop: the event loop on which a workflow's code runs.

It implements what asyncio's own Task and Future ask of a loop, and nothing that reads a clock, a
socket or chance: ready callbacks run in the order in which they became ready, `time()` is the
run's time, and `call_later` is a durable timer. So plain asyncio code is repeatable, and
everything else is refused with what to write instead.
"""

from __future__ import annotations

import asyncio
from asyncio.events import _get_running_loop, _set_running_loop
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from functools import partial
from math import isnan
from sys import get_asyncgen_hooks, set_asyncgen_hooks
from typing import Any, Final, Self

from perdure.kernel.code.callbacks import Ready, Recorder, Timer
from perdure.kernel.code.current_task import SWAPS, enter, leave
from perdure.kernel.code.forbidden import ADVICE, reached_into, refusal
from perdure.kernel.code.scopes import SCOPE
from perdure.kernel.code.turns import AT_REST, DECIDING, RUNNING, OwnFuture
from perdure.model.durations import MAX_DURATION, SECOND

#: How many callbacks may run in a turn without the workflow asking for anything new.
IDLE_CALLBACKS: Final = 100_000
#: What ends the process, wherever it is raised.
_ENDINGS: Final = (KeyboardInterrupt, SystemExit)


class HotLoop(BaseException):
    """The workflow runs on and on without ever waiting for anything."""


class WorkflowTask(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address: asyncio keeps tasks in sets, and
    cancels them in the order of those (TaskGroup), which must be the same on replay."""

    __slots__ = ("place",)
    place: int

    def __new__(cls, place: int, *args: Any, **kwargs: Any) -> Self:
        """Known by its place before asyncio registers it."""
        task = super().__new__(cls)
        task.place = place
        return task

    def __init__(self, place: int, coro: Coroutine[Any, Any, Any], **options: Any) -> None:
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self.place

    def cancel(self, msg: Any = None) -> bool:
        """Raises ForbiddenInWorkflow from outside."""
        loop = self.get_loop()
        if isinstance(loop, WorkflowLoop) and loop.turn == AT_REST and loop.alive:
            raise reached_into()
        return super().cancel(msg)


class WorkflowLoop(asyncio.AbstractEventLoop):
    """One run's loop. It runs only within `run_ready`, from whatever loop or thread calls that.
    Once it is not `alive`, what is asked for has no effect and never comes."""

    def __init__(self, calls: Recorder) -> None:
        self.calls = calls
        self.alive = True
        #: At rest, whatever reaches the loop comes from outside the run.
        self.turn = DECIDING
        #: The time of the transition being decided, and of the run's beginning; µs.
        self.now = self.began = 0
        #: Sets the run's tasks apart from other runs' in sets; the same on replay.
        self.salt = 0
        #: Callbacks run in this turn since the workflow last asked for something new.
        self.idle = 0
        #: What went wrong where nobody looked, as asyncio tells it.
        self.untold: Sequence[dict[str, Any]] = ()
        #: A list, replaced as it is worked off: an empty deque takes more than half a kilobyte.
        self._ready: list[Ready] = []
        self._main: asyncio.Task[Any] | None = None
        #: Those beside it that are not done, by their places, oldest first; what forgets one that
        #: is, and in which context. Made for the first of them, if there is one.
        self._tasks: dict[int, asyncio.Task[Any]] | None = None
        self._forget: Callable[[Any], None] | None = None
        self._plain: Context | None = None
        self._count = 0

    # ------------------------------------------------------------------ running

    def run_ready(
        self, context: Context | None = None, callback: Any = None, argument: Any = None
    ) -> None:
        """Run a callback in its context, if one is given, and then on until nothing is ready.
        Raises HotLoop when there is no end to it."""
        if context is None and not self._ready:
            return
        before = _get_running_loop()
        hooks = get_asyncgen_hooks()
        _set_running_loop(self)
        set_asyncgen_hooks(_ignore, self._finalize)
        if SWAPS:
            outer = leave()
        self.turn = RUNNING
        self.idle = 0  # a loop without end never leaves its turn
        try:
            if context is not None:
                try:
                    context.run(callback, argument)
                except _ENDINGS:
                    raise
                except BaseException as error:
                    self._tell(error)
            if self._ready:
                self._run_all()
        finally:
            self.turn = DECIDING
            if SWAPS:
                enter(outer)
            set_asyncgen_hooks(*hooks)
            _set_running_loop(before)

    def _run_all(self) -> None:
        while self._ready:
            ready, self._ready = self._ready, []
            for handle in ready:
                if not self.alive:
                    return
                if handle.gone:
                    continue
                self.idle += 1
                if self.idle > IDLE_CALLBACKS:
                    raise HotLoop
                try:
                    handle.context.run(handle.callback, *handle.args)
                except _ENDINGS:
                    raise
                except BaseException as error:
                    self._tell(error)

    def _tell(self, error: BaseException) -> None:
        """What a callback raises is nobody's, as in asyncio: it is told, and the others run."""
        message = "a callback of its code raised, and nothing else comes of that"
        self.call_exception_handler({"message": message, "exception": error})

    def _finalize(self, generator: AsyncGenerator[Any, Any]) -> None:
        if self.alive:
            # Not by `call_soon`: the garbage collector may come by whenever it likes.
            self._ready.append(Ready(self.create_task, (generator.aclose(),), copy_context()))

    def fire(self, timer: Timer) -> None:
        """A timer is due: its callback is ready."""
        timer.over = True
        if not timer.gone:
            self._ready.append(timer)

    @property
    def tasks(self) -> list[asyncio.Task[Any]]:
        """The tasks that are not done, oldest first."""
        tasks = [] if self._main is None or self._main.done() else [self._main]
        if self._tasks:
            tasks += [task for task in self._tasks.values() if not task.done()]
        return tasks

    def forget_tasks(self) -> None:
        """The run has ended: its tasks are nobody's any more."""
        if self._tasks is not None:
            self._tasks.clear()
        self._main = self._tasks = self._forget = None
        self._ready.clear()

    def release(self) -> None:
        """Nothing runs here any more. Its calls refer to this loop: left as they are, only the
        garbage collector would free the two."""
        vars(self).pop("calls", None)

    # ------------------------------------------------------------------ what asyncio asks for

    def time(self) -> float:
        """Seconds since the run began, as of the transition being decided."""
        return (self.now - self.began) / SECOND

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Ready:
        """Run a callback after those that are ready already. Raises ForbiddenInWorkflow for what
        comes while the run is at rest: from another thread, or from a step's code."""
        if self.turn == AT_REST and self.alive:
            raise reached_into()
        handle = Ready(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any,
        context: Context | None = None,
    ) -> Ready:  # fmt: skip
        """Run a callback after so many seconds of the run's time: a durable timer."""
        return self.call_at(self.time() + delay, callback, *args, context=context)

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., Any], *args: Any,
        context: Context | None = None,
    ) -> Ready:  # fmt: skip
        """Run a callback at a time of the loop's clock: a durable timer. One that is further away
        than can be recorded, or infinitely far, is due at the last moment that can. Raises
        ForbiddenInWorkflow as call_soon does."""
        if not self.alive:  # it never comes
            return Ready(callback, args, copy_context() if context is None else context)
        if self.turn == AT_REST:
            raise reached_into()
        if isnan(when):
            raise ValueError("a timer's time is not a number: use seconds")
        due = self.began + round(min(when * SECOND, MAX_DURATION))
        if due <= self.now:
            return self.call_soon(callback, *args, context=context)
        context = copy_context() if context is None else context
        return self.calls.timer_wanted(when, due, callback, args, context)

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return OwnFuture(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, name: str | None = None,
        context: Context | None = None, **_: Any,
    ) -> asyncio.Task[Any]:  # fmt: skip
        """A task of this loop; it begins when what is ready before it has run."""
        if not self.alive:
            coro.close()
            return self.create_future()  # type: ignore[return-value]  # it never ends
        task = self._new_task(coro, name, context)
        if self._tasks is None or self._forget is None:
            self._tasks, self._plain = {}, Context()
            self._forget = partial(_forget, self._tasks)
        self._tasks[task.place] = task
        # One that is done is nobody's but the code's: if it failed and is let go of unseen, asyncio
        # tells.
        task.add_done_callback(self._forget, context=self._plain)
        return task

    def begin(self, coro: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """The run's first task, with whose end all ends."""
        context = copy_context()
        if SCOPE.get() is not None:  # whatever runs in its name stands in scopes of its own
            context.run(SCOPE.set, None)
        self._main = self._new_task(coro, "main", context)
        return self._main

    def _new_task(
        self, coro: Coroutine[Any, Any, Any], name: str | None, context: Context | None
    ) -> WorkflowTask:
        # asyncio's own default counts all tasks of the process: not the same on replay.
        self._count += 1
        return WorkflowTask(
            self.salt + self._count, coro, loop=self, name=name or f"task-{self._count}",
            context=context,
        )  # fmt: skip

    #: Never: slow callbacks are the engine's to notice. Every future asks: `bool()` is no call of
    #: ours.
    get_debug = bool

    def is_running(self) -> bool:
        """Always: code that runs here is run by it."""
        return True

    def get_task_factory(self) -> None:
        """None: tasks are made as always."""

    def get_exception_handler(self) -> None:
        """None: what goes wrong where nobody looks is logged."""

    def is_closed(self) -> bool:
        """Whether the run was let go of."""
        return not self.alive

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep what asyncio has to tell, the first time; the engine logs it."""
        if self.alive and self.calls.recorded is None:
            self.untold = (*self.untold, context)

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """The same."""
        self.call_exception_handler(context)


for _method in ADVICE:
    setattr(WorkflowLoop, _method, refusal(_method))


def _forget(tasks: dict[int, asyncio.Task[Any]], task: Any) -> None:
    tasks.pop(task.place, None)


def _ignore(_: object) -> None:
    return None
