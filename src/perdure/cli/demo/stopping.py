"""Stopping: every way in which people end a program stops the demo, and ends all it has begun.

A signal may come at any moment, also when a process has begun and nobody holds it yet: while one
begins the demo does not stop, and each is noted before it can.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Processes:
    """Those that a demo has begun."""

    def __init__(self) -> None:
        self._begun: list[subprocess.Popen[Any]] = []
        self._beginning = False
        self._stopped = False

    def stop_once(self) -> None:
        """From now on these signals stop the demo, the first of them: whoever is impatient does
        not stop the cleaning up."""
        self._begun, self._stopped = [], False
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        self._stopped = True
        if not self._beginning:
            raise KeyboardInterrupt

    def begin(self, words: Sequence[str], **how: Any) -> subprocess.Popen[Any]:
        """Begin a process, as Popen does, in a session of its own: Ctrl-C is for the demo."""
        self._beginning = True
        try:
            begun = subprocess.Popen(words, start_new_session=True, **how)  # noqa: S603  own words
            self._begun.append(begun)
        finally:
            self._beginning = False
        if self._stopped:
            raise KeyboardInterrupt
        return begun

    def end_all(self) -> None:
        """Kill those that go on."""
        for process in self._begun:
            if process.poll() is None:
                process.kill()
                process.wait()


PROCESSES: Final = Processes()
