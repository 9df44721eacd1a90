"""Threads for `def` steps: made when needed, kept for the next call, and never waited for at exit.

The standard library's pool joins its threads when the interpreter ends, so one step that hangs
would keep the process from ending for ever. A step's outcome counts only once it is recorded;
a process that ends without it loses nothing that was promised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias

_Call: TypeAlias = tuple["Future[Any]", Callable[[], Any]]


class Threads:
    """At most `most` calls at a time; further ones wait for their turn, in order."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._made = 0
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._unended = 0

    @property
    def full(self) -> bool:
        """Whether the next call may have to wait for its turn."""
        return self._unended >= self._most

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Run the call on a thread; its future can be cancelled until it has begun."""
        future: Future[Any] = Future()
        with self._lock:
            self._unended += 1
        self._calls.put((future, call))
        if not self._idle.acquire(blocking=False) and self._made < self._most:
            self._made += 1
            name = f"perdure-step-{self._made}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        return future

    def close(self) -> None:
        """Take nothing more; threads end when their call does."""
        for _ in range(self._made):
            self._calls.put(None)

    def _serve(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if future.set_running_or_notify_cancel():
                try:
                    result = call()
                except BaseException as error:  # whatever it is, it is the step's outcome
                    future.set_exception(error)
                else:
                    future.set_result(result)
            del future, call, item
            with self._lock:
                self._unended -= 1
            self._idle.release()
