"""Orders: an attempt to carry out, and what its code sees of it (`current_step()`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from msgspec import Raw

from perdure.engine.clock import Clock
from perdure.engine.handlers.port import Attempt, Handler
from perdure.engine.handlers.queued import Queued
from perdure.model.step_context import StepContext

#: Of an input that has none, as most.
NO_SECRETS: Final[Mapping[str, str]] = {}

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


class Times(Protocol):
    """Knows what time it is, and how long an attempt may take."""

    @property
    def clock(self) -> Clock:
        """The engine's."""

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """By type of node."""


class EngineStep(StepContext, eq=False, kw_only=True):
    """Most attempts are over before they wait for anything: what their time is is asked late."""

    _times: Times = None  # type: ignore[assignment]
    #: How long the attempt may take, in µs, from when its time begins; 0 = no limit.
    limit: int | None = None

    @property
    def canceled(self) -> bool:
        """See StepContext.canceled."""
        order: Any = self._of
        return self._canceled or order.halted

    @canceled.setter
    def canceled(self, value: bool) -> None:
        self._canceled = value

    @property
    def deadline(self) -> datetime | None:
        """See StepContext.deadline."""
        self.begin_time()
        return super().deadline

    def begin_time(self) -> int:
        """Its time begins, unless it has begun: when it first waits, or asks; on a thread, with
        its turn. How long it may take, in µs; 0 = no limit."""
        order: Any = self._of
        limit = self.limit
        if limit is None:
            limit = order.timeout
            if limit is None:
                limit = self._times.handlers[order.type].timeout(order)
            self.limit = limit
        if limit and self._deadline is None:
            if order.queued is None:
                self._deadline = self._times.clock.now() + limit
            else:
                self._deadline = order.queued.deadline(limit)
        return limit

    def _queue(self) -> Queued:
        order: Any = self._of
        order.queued = queued = Queued(self._times.clock.now())
        return queued

    def _logger(self) -> logging.Logger:
        return logger_of(self)
