"""How people end a command that works: gently at first, at once when they ask again."""

from __future__ import annotations

import asyncio
import signal

from perdure.cli.progress import Screen


class Stop:
    """Whether SIGINT or SIGTERM came. The second one ends the process at once."""

    def __init__(self, screen: Screen, grace: float) -> None:
        self.signal = 0
        self._screen = screen
        self._grace = grace
        self._came: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __enter__(self) -> asyncio.Future[None]:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stop, number)
        return self._came

    def _stop(self, number: int) -> None:
        self.signal = number
        self._screen.note(
            f"stopping: steps under way have {self._grace:g} s to end (again to stop at once)"
        )
        self._release()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if not self._came.done():
            self._came.set_result(None)

    def _release(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)

    def __exit__(self, *exc: object) -> None:
        if not self.signal:
            self._release()
