"""Mirrored: what the synchronous classes share. Each call is made on the loop thread, by an
asynchronous twin that belongs to this process.

A client that a parent made is made anew, with connections of its own, in a child after a fork.
What cannot be made anew is refused: a store object, memory that was in use, an engine at work.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, ClassVar, Final, Self

from perdure.blocking.loop_thread import LoopThread, lock, loop_thread
from perdure.client.client import Client as AsyncClient
from perdure.client.engine import Engine as AsyncEngine
from perdure.client.run import Run as AsyncRun
from perdure.model.errors import AlreadyStarted, PerdureError, RunFailed

_END: Final = object()
#: What parents had at a fork: kept as it is, and never closed here.
_parents: list[Any] = []


class Mirrored:
    """The twin, by process; `Handle` is the class of its runs' handles."""

    Twin: ClassVar[type[AsyncClient]] = AsyncClient
    Handle: ClassVar[type[Any]]

    _twin: AsyncClient
    _pid: int
    _used: bool

    def _make(self, *args: Any, **options: Any) -> None:
        """Remember what twins are made of; the first one is made at once, so that what is wrong
        is told where it is written."""
        self._args = tuple(list(a) if isinstance(a, Iterator) else a for a in args)
        self._options = {n: list(o) if isinstance(o, Iterator) else o for n, o in options.items()}
        self._new()

    def _new(self) -> None:
        twin: Callable[..., AsyncClient] = self.Twin
        self._twin = twin(*self._args, **self._options)
        self._used = False
        self._pid = os.getpid()  # last: with it the others hold

    @property
    def _async(self) -> Any:
        """This process's twin."""
        if self._pid != os.getpid():
            with lock():
                if self._pid != os.getpid():
                    self._moved()
        return self._twin

    def _moved(self) -> None:
        """Here is a child of the process that made this."""
        if self._used:
            if isinstance(self._twin, AsyncEngine):
                raise PerdureError(
                    f"this engine was opened in process {self._pid}, of which this is a child: "
                    "open one here"
                )
            if not isinstance(self._args[0], str) or not self._twin._store.durable:
                raise PerdureError(
                    f"this client's store belongs to process {self._pid}, of which this is a "
                    "child: make the client with the URL of a store that processes share"
                )
        before = self._twin
        _parents.append(before)
        self._new()
        self._twin._telling.listeners.inherit(before._telling.listeners)

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Await it on the loop thread. Handles in errors become synchronous ones."""
        try:
            thread = self._thread()
        except BaseException:
            coroutine.close()
            raise
        try:
            return thread.call(coroutine)
        except (AlreadyStarted, RunFailed) as error:
            if isinstance(error.run, AsyncRun):
                error.run = self._handle(error.run)
            raise

    def _each(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        """The items, each fetched when it is asked for."""

        async def following() -> Any:
            return await anext(items, _END)

        try:
            while (item := self._call(following())) is not _END:
                yield item
        finally:
            close = getattr(items, "aclose", None)
            if close is not None:
                self._call(close())

    def _apply(self, function: Callable[[], Any]) -> Any:
        """Call a plain function of the twin on the loop's thread."""

        async def calling() -> Any:
            return function()

        return self._call(calling())

    def _handle(self, run: AsyncRun[Any]) -> Any:
        return self.Handle(self, run._definition or run.workflow, run.id)

    def _thread(self) -> LoopThread:
        thread = loop_thread()
        if not self._used:
            with lock():
                if not self._used:
                    thread.closing[self] = self._close
                    self._used = True
        return thread

    async def _close(self) -> None:
        await self._twin.__aexit__(None, None, None)

    def __enter__(self) -> Self:
        self._call(self._async.__aenter__())
        return self

    def __exit__(self, *exc: object) -> None:
        loop_thread().closing.pop(self, None)
        self._call(self._async.__aexit__(*exc))

    def close(self) -> None:
        """Close what it opened; it cannot be used after that. Not needed at the end of a process:
        what is open then is closed."""
        self.__exit__(None, None, None)


class Serving:
    """`serve` of a synchronous engine: signals are heard by the caller's thread, the main one."""

    def serve(self) -> None:
        """Work until SIGTERM or SIGINT, then return; leaving the `with` block ends the running
        attempts within the grace period. Only on the main thread, and only here are signals
        handled; afterwards they are handled as before."""
        # A pipe and no Event: a handler that interrupts the wait could not take its lock.
        heard, told = os.pipe()
        before: dict[int, Any] = {}
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, lambda *_: os.write(told, b"."))
            os.read(heard, 1)
        finally:
            for kept, handler in before.items():
                signal.signal(kept, handler)
            os.close(heard)
            os.close(told)
