"""StepContext: what a step can ask about the attempt it runs in.

A value that the dispatcher fills in and a context variable that holds it; nothing here reads a
clock or does I/O.
"""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from perdure.model.errors import NotFound
from perdure.model.moments import moment

if TYPE_CHECKING:
    import logging

T = TypeVar("T")


class ResourceLookup(Protocol):
    """Where a step's resources come from."""

    def find(self, type: type[T], /) -> T:
        """The resource of this type. Raises NotFound, or InvalidRequest if several fit."""


class Attempted(Protocol):
    """An attempt of a task; `number` from 0."""

    @property
    def workflow(self) -> str: ...
    @property
    def run_id(self) -> str: ...
    @property
    def node(self) -> str: ...
    @property
    def task(self) -> str: ...
    @property
    def number(self) -> int: ...


class StepContext(msgspec.Struct, eq=False):
    """One attempt of one task, seen from inside the step's function.

    `attempt` counts from 1. `idempotency_key` is the same over all attempts and recoveries of
    the task: pass it to services that can drop a repeat.
    """

    # A struct: one is made for each attempt, and most are never looked at.
    _of: Attempted
    _resources: ResourceLookup | None = None
    _deadline: int | None = None
    _canceled: bool = False
    _details: Any = None

    def __repr__(self) -> str:
        of = self._of
        return f"<{type(self).__name__} of attempt {of.number + 1} of node {of.node}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # A struct's own shows all that it refers to: the engine, and what an input says of secrets.
        return [("node", self.node), ("attempt", self.attempt)]

    @property
    def canceled(self) -> bool:
        """Set when this attempt should stop: its time is over, or the engine shuts down."""
        return self._canceled

    @canceled.setter
    def canceled(self, value: bool) -> None:
        self._canceled = value

    @property
    def workflow(self) -> str:
        """The workflow's name."""
        return self._of.workflow

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._of.run_id

    @property
    def node(self) -> str:
        """The node, or call, of the run."""
        return self._of.node

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._of.number + 1

    @property
    def idempotency_key(self) -> str:
        """Stable over attempts and recoveries; new only when the task itself is new."""
        return self._of.task

    @property
    def deadline(self) -> datetime | None:
        """When this attempt's time is over (aware, UTC), or None."""
        if self._deadline is None:
            return None
        return moment(self._deadline)

    @property
    def details(self) -> Any:
        """What the previous attempt's last heartbeat said."""
        return self._details

    @property
    def logger(self) -> logging.Logger:
        """A logger named after the workflow and node."""
        return self._logger()

    def heartbeat(self, details: object = None) -> None:
        """Say that the step is alive; `details` is seen by the next attempt."""
        self._beat(details)

    def resource(self, type: type[T], /) -> T:
        """The resource of this type given to the engine.

        Raises NotFound, or InvalidRequest when several objects are of this type.
        """
        if self._resources is None:
            raise NotFound(
                f"no resource of type {type.__name__}: pass one in Engine(resources=[...])"
            )
        return self._resources.find(type)

    def _logger(self) -> logging.Logger:
        raise RuntimeError("this step context has no logger: it runs outside an engine")

    def _queue(self) -> Any:
        """What is to be told when its turn on a thread comes; nobody outside an engine."""
        return None

    def _beat(self, details: object) -> None:
        """Nobody listens outside an engine."""


CURRENT: ContextVar[StepContext] = ContextVar("perdure_step")


def current_step() -> StepContext:
    """The attempt this code runs in. Raises LookupError outside a step run by an engine."""
    try:
        return CURRENT.get()
    except LookupError:
        raise LookupError("current_step() works only inside a step that an engine runs") from None
