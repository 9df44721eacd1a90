"""Orders: an attempt to carry out, and what its code sees of it (`current_step()`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from perdure.engine.handlers.port import Attempt
from perdure.engine.queued import Queued
from perdure.model.step_context import StepContext

if TYPE_CHECKING:
    from perdure.engine.dispatcher import Dispatcher

_LOGGERS: Final[dict[str, logging.Logger]] = {}


class Order(Attempt, gc=False):
    """An attempt to carry out: its input is read from what is `stored` when it begins. `secrets`:
    pointers into the input whose text is a secret's template."""

    stored: Raw | None = None
    secrets: Mapping[str, str] = {}
    #: Made once more, since the first time something cancelled the task it ran in.
    again: bool = False
    #: A process that had the run before may have begun it, where that matters.
    before: bool = False
    #: It waited for something: meanwhile others had the loop.
    waited: bool = False
    #: Its run has given the task up: it was asked to stop, and how it ends changes nothing.
    unwanted: bool = False
    #: Its run is to stop, and undoes what it did then: it was asked to end, and how it ends counts.
    halted: bool = False
    #: It may have to wait for a thread.
    queued: Queued | None = None


def logger_of(step: StepContext) -> logging.Logger:
    """The logger of a step: `perdure.steps.<workflow>.<node>`."""
    name = f"perdure.steps.{step.workflow}.{step.node}"
    return _LOGGERS.setdefault(name, logging.getLogger(name))


class EngineStep(StepContext, eq=False, kw_only=True):
    """Most attempts are over before they wait for anything: what their time is is asked late."""

    _dispatcher: Dispatcher = None  # type: ignore[assignment]
    _limit: int | None = None
    #: What is cancelled when the time is over.
    task: asyncio.Task[Any] | None = None

    @property
    def canceled(self) -> bool:
        """See StepContext.canceled."""
        order: Any = self._of
        return self._canceled or order.halted

    @canceled.setter
    def canceled(self, value: bool) -> None:
        self._canceled = value

    @property
    def limit(self) -> int:
        """How long the attempt may take, in µs; 0 = no limit."""
        if self._limit is None:
            order: Any = self._of
            self._limit = self._dispatcher.handlers[order.type].timeout(order)
        return self._limit

    @property
    def deadline(self) -> datetime | None:
        """See StepContext.deadline."""
        self.begin_time()
        return super().deadline

    def begin_time(self) -> None:
        """Its time begins, unless it has begun: when it first waits, or asks; on a thread, with
        its turn."""
        if self._deadline is not None or not self.limit:
            return
        order: Any = self._of
        if order.queued is not None:
            self._deadline = order.queued.deadline(self.limit)
        else:
            self._deadline = self._dispatcher.clock.now() + self.limit

    @property
    def left(self) -> Callable[[], float] | None:
        """Asks how many seconds it has left, where its time may begin later."""
        order: Any = self._of
        return None if order.queued is None else partial(order.queued.left, self.limit)

    def _queue(self) -> Queued:
        order: Any = self._of
        order.queued = queued = Queued(self._dispatcher.clock.now())
        return queued

    def expired(self) -> None:
        """Its time is over."""
        self.canceled = True
        if self.task is not None:
            self.task.cancel()

    def _logger(self) -> logging.Logger:
        return logger_of(self)
