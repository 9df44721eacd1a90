"""One event loop in a thread of its own, for all synchronous clients of a process.

Started at the first call and once per process id: what a parent started does not run in its
child after a fork, so a child that needs one starts its own (prefork servers). It ends with the
process, after the clients that are still open were closed.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures.thread  # its threads end after what is registered later
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from perdure.model.errors import PerdureError

T = TypeVar("T")

#: How long the end of the process waits for what is open to close, in seconds.
PATIENCE: Final = 30.0


class LoopThread:
    """A running event loop."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="perdure", daemon=True)
        #: Coroutine functions to await before the loop ends, by what asked for it.
        self.closing: dict[object, Any] = {}
        #: Calls that are waited for; what ended them where code of users ended the process.
        self._calls: dict[concurrent.futures.Future[Any], BaseException | None] = {}
        #: Held while a call begins: the loop may come to an end before it is in `_calls`.
        self._beginning = threading.Lock()
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
                return
            except (SystemExit, KeyboardInterrupt) as error:
                # Of a step or a workflow: it ends the process, from whoever waits here. What is
                # open is closed on this loop still.
                with self._beginning:
                    for future in list(self._calls):
                        self._calls[future] = error
                        future.cancel()

    async def _wind_up(self) -> None:
        """End what an interrupt left behind: it may be closing something, and goes on with that."""
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            if not task.cancelling():
                task.cancel()
        if left:
            done, _ = await asyncio.wait(left, timeout=PATIENCE)
            for task in done:
                task.cancelled() or task.exception()  # nobody is there to be told

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """What the coroutine returns or raises. An interrupt of the caller (Ctrl-C) cancels it.
        A step or workflow that raises SystemExit meanwhile raises it here.

        Raises PerdureError when called on the loop's own thread, which would wait for itself.
        """
        try:
            if threading.current_thread() is self._thread:
                raise PerdureError(
                    "perdure.blocking was called in code that its own event loop runs (a workflow, "
                    "an `async def` step or listener): use a plain `def` step, or perdure.Client "
                    "there"
                )
            with self._beginning:
                future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
                self._calls[future] = None
        except BaseException:
            with contextlib.suppress(ValueError):  # it runs already
                coroutine.close()
            raise
        try:
            return future.result()
        except BaseException:
            future.cancel()
            if (ended := self._calls[future]) is not None:
                raise ended from None
            raise
        finally:
            with self._beginning:
                del self._calls[future]

    def end(self) -> None:
        """Close what is open, then stop."""
        for close in [*self.closing.values(), self._wind_up]:
            future = asyncio.run_coroutine_threadsafe(close(), self._loop)
            with contextlib.suppress(Exception):  # it is over: what is recorded is recorded
                future.result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        if not self._thread.is_alive():
            self._loop.close()


_lock = threading.Lock()
_current: LoopThread | None = None
#: What a parent had at the fork: never closed here, for it shares files with the parent's.
_parents: list[LoopThread] = []


def lock() -> threading.Lock:
    """What threads of this process hold while they change what they share here."""
    return _lock


def loop_thread() -> LoopThread:
    """This process's loop thread; started if need be."""
    global _current  # noqa: PLW0603  # one per process is the point
    with _lock:
        if _current is None:
            _current = LoopThread()
        return _current


def _in_child() -> None:
    global _current, _lock  # noqa: PLW0603
    _lock = threading.Lock()  # the parent's may be held by a thread that is not here
    if _current is not None:
        _parents.append(_current)
        _current = None


def _at_exit() -> None:
    if _current is not None:
        _current.end()


os.register_at_fork(after_in_child=_in_child)
# Before the threads of executors end, which closing a store, and steps that end in time, need.
# Python has a place for that, if not a public one.
getattr(threading, "_register_atexit", atexit.register)(_at_exit)
