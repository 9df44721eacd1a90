"""Callbacks that wait for their turn on a workflow's loop. One for later is a durable timer.

A timer has a place in the journal; who records it, and that it is cancelled, is the Recorder.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Any, ClassVar, Protocol

import msgspec


class Ready(msgspec.Struct, eq=False):
    """A callback that is ready to run; what `call_soon` gives."""

    callback: Callable[..., Any]
    args: Any
    context: Context
    gone: bool = False

    def cancel(self) -> None:
        """Do not run it."""
        self.gone = True

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self.gone


class Timer(Ready, eq=False, kw_only=True):
    """A callback for later. `due` in µs since the epoch; `node` is its place in the journal."""

    #: It is no call: no attempt is executed for it, and none reports.
    how: ClassVar[None] = None
    first: ClassVar[bool] = False
    signal: ClassVar[None] = None

    loop: TimersLoop
    at: float
    due: int
    node: str
    #: The recorded task; empty while it is not recorded.
    task: str = ""
    over: bool = False

    def when(self) -> float:
        """The loop's time at which it is due."""
        return self.at

    def cancel(self) -> None:
        """Do not run it; a durable timer is taken down in the same transition."""
        if not self.gone:
            self.gone = True
            if not self.over and self.loop.alive:
                self.loop.calls.timer_given_up(self)


class Recorder(Protocol):
    """Who records what the code asks for on the loop: the run's Calls, which its futures and step
    calls reach by `loop.calls`. `recorded` is None while the run is not replayed."""

    recorded: Any

    def timer_wanted(
        self, when: float, due: int, callback: Callable[..., Any], args: Any, context: Context
    ) -> Timer:
        """A callback is to run later."""

    def timer_given_up(self, timer: Timer) -> None:
        """A timer that has not fired is cancelled."""


class TimersLoop(Protocol):
    """What a timer asks of its loop: once that is not `alive`, nothing is recorded."""

    alive: bool
    calls: Recorder
