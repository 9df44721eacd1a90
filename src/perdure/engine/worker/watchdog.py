"""Watchdog: a thread that sees whether the event loop still turns.

While it does, the thread extends this worker's lease whenever the loop has not found the time
for a beat. It says which code keeps the loop from turning. A loop that has not turned for half a
lease is deaf: then nothing extends the lease any more, and the runs go to workers that listen.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Final

from perdure.model.durations import SECOND
from perdure.model.errors import StoreError
from perdure.stores.port import LEASE

if TYPE_CHECKING:
    from perdure.engine.worker.shell import Shell

_log = logging.getLogger("perdure.engine")

#: How often the thread looks, in seconds.
LOOK_EVERY: Final = 0.5
#: Seconds without a turn after which the code that blocks the loop is named.
BLOCKED: Final = 1.0
#: Seconds that closing waits for the thread without letting the loop turn.
SHORTLY: Final = 0.05
#: Frames of it that are shown, the innermost ones.
FRAMES: Final = 8


class Watchdog:
    """`lease` in seconds. Opened and closed on the loop that it watches."""

    def __init__(self, shell: Shell, *, lease: float = LEASE / SECOND) -> None:
        self._shell = shell
        self._lease = lease
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._asked = True
        self._turned = self._extended = 0.0
        self._suspect = 0
        self._named = False
        self._given_up = False
        #: The store did not extend the lease when it was asked last.
        self._away = False

    def open(self) -> None:
        """Watch the running loop."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._turned = self._extended = time.monotonic()
        self._asked = False
        thread = threading.Thread(target=self._watch, name="perdure-watchdog", daemon=True)
        thread.start()
        self._thread = thread  # one that cannot begin is none: nobody waits for it

    async def close(self) -> None:
        """Watch no more. The thread ends by itself: it may be waiting for the store."""
        self._closed.set()
        if self._thread is None:
            return
        self._thread.join(SHORTLY)
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def _watch(self) -> None:
        # A loop that ended while it was asked whether it turns is asked nothing more.
        while not self._closed.wait(LOOK_EVERY) and not self._over():
            try:
                self.look(time.monotonic())
            except Exception:
                if not self._over():
                    _log.exception("the watchdog failed")

    def _over(self) -> bool:
        """Whether there is nothing left to watch."""
        return self._loop is None or self._loop.is_closed()

    def look(self, now: float) -> None:
        """See whether the loop has turned since the last look. Raises RuntimeError when it is
        closed."""
        if not self._asked:
            self._asked = True
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._answer)
        silent, at_work = now - self._turned, self._at_work()
        if silent < BLOCKED:
            self._named = self._given_up = False
        elif at_work == self._suspect and not self._named:
            self._named = True
            _log.warning("the event loop is blocked for %.1f s now, by:\n%s", silent, self._where())
        self._suspect = at_work
        if silent < self._lease / 2:
            self._extend(now)
        elif not self._given_up:
            self._given_up = True
            _log.error(
                "the event loop is blocked for %.0f s: this worker lets its lease run out, and "
                "its runs go on elsewhere; blocked by:\n%s", silent, self._where(),
            )  # fmt: skip

    def _at_work(self) -> int:
        """What the loop is at: many tasks that take their turns block nobody, one that is there
        at every look does."""
        loop = self._loop
        assert loop is not None
        return id(asyncio.current_task(loop))

    def _answer(self) -> None:
        """On the loop: it turns."""
        self._turned = time.monotonic()
        self._asked = False

    def _extend(self, now: float) -> None:
        """Extend the lease where the loop's own beats have not."""
        if self._shell.lease_over - now > self._lease * 2 / 3:
            self._is_back()
            return
        if now - self._extended < self._lease / 6:
            return
        self._extended = now
        try:
            if self._shell.store.extend(self._shell.worker):
                self._shell.lease_over = max(self._shell.lease_over, now + self._lease)
                self._is_back()
        except StoreError as error:
            if not self._away:
                self._away = True
                _log.warning(
                    "the store did not extend the lease of this worker (it is asked again): %s",
                    error,
                )

    def _is_back(self) -> None:
        if self._away:
            self._away = False
            _log.warning("the lease of this worker is extended again")

    def _where(self) -> str:
        """The code the loop's thread is in."""
        frame = sys._current_frames().get(self._loop_thread)
        if frame is None:
            return "code that cannot be seen"
        return "".join(traceback.format_stack(frame)[-FRAMES:]).rstrip()
