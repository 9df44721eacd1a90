"""What a client tells its program of its own calls: a run was started, signaled, canceled, an event
of the program's own was emitted.

Told once the call has succeeded, and only then. Nothing here follows the run: its end is for
whoever works on it to tell, or for whoever waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from perdure.client.emitting import is_emitted
from perdure.engine.listeners import Listeners
from perdure.feed import ClientEvent, RunCanceled, RunSignaled, RunStarted
from perdure.model.errors import InvalidRequest
from perdure.model.moments import moment


class Telling:
    """The listeners of one client. `now`: µs since the epoch."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._tasks: set[asyncio.Task[None]] = set()
        self.listeners = Listeners(self.spawn)

    def listen(self, kind: Any, call: Callable[[Any], Any]) -> None:
        """Call with every event of this class. Raises InvalidRequest for what no client tells."""
        if not (is_emitted(kind) or (isinstance(kind, type) and issubclass(kind, ClientEvent))):
            other = getattr(kind, "__name__", kind)
            raise InvalidRequest(
                f"a client tells of its own calls, and not of {other}: "
                "listen to RunStarted, RunSignaled, RunCanceled or ClientEvent of perdure.feed, to "
                "a class of yours whose events it is to emit, or to others with an Engine"
            )
        self.listeners.add(kind, call)

    def started(self, workflow: str, id: str) -> None:
        """A run was made."""
        self._tell(RunStarted, workflow, id)

    def signaled(self, workflow: str, id: str, signal: str) -> None:
        """A signal is in its mailbox."""
        self._tell(RunSignaled, workflow, id, signal=signal)

    def canceled(self, workflow: str, id: str) -> None:
        """A run was asked to end."""
        self._tell(RunCanceled, workflow, id)

    async def close(self, seconds: float) -> None:
        """Let the listeners hear what is left, for so long at most."""
        await self.listeners.close(seconds)
        for task in self._tasks:
            task.cancel()

    def _tell(self, kind: type[ClientEvent], workflow: str, id: str, **more: str) -> None:
        if self.listeners.each:
            time = moment(self._now())
            self.listeners.tell(kind(workflow=workflow, run_id=id, time=time, **more))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run as a task that is kept until it ends, or the client does."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
