"""StepContext: what a step can ask about the attempt it runs in.

A value that the dispatcher fills in and a context variable that holds it; nothing here reads a
clock or does I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from perdure.model.errors import NotFound

if TYPE_CHECKING:
    import logging

T = TypeVar("T")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ResourceLookup(Protocol):
    """Where a step's resources come from."""

    def find(self, type: type[T], /) -> T:
        """The resource of this type. Raises NotFound, or InvalidRequest if several fit."""


class StepContext:
    """One attempt of one task, seen from inside the step's function.

    `attempt` counts from 1. `idempotency_key` is the same over all attempts and recoveries of
    the task: pass it to services that can drop a repeat.
    """

    #: Set when this attempt should stop: its time is over, or the engine shuts down.
    canceled: bool = False
    #: What the previous attempt's last heartbeat said.
    details: Any = None
    on_heartbeat: Callable[[object], None] | None = None
    on_logger: Callable[[StepContext], logging.Logger] | None = None

    def __init__(
        self,
        workflow: str,
        run_id: str,
        node: str,
        task: str,
        attempt: int,
        deadline: int | None = None,
        resources: ResourceLookup | None = None,
    ) -> None:
        self.workflow = workflow
        self.run_id = run_id
        self.node = node
        self.attempt = attempt
        self._task = task
        self._deadline = deadline
        self._resources = resources

    @property
    def idempotency_key(self) -> str:
        """Stable over attempts and recoveries; new only when the task itself is new."""
        return self._task

    @property
    def deadline(self) -> datetime | None:
        """When this attempt's time is over (aware, UTC), or None."""
        if self._deadline is None:
            return None
        return _EPOCH + timedelta(microseconds=self._deadline)

    @property
    def logger(self) -> logging.Logger:
        """A logger named after the workflow and node."""
        if self.on_logger is None:
            raise RuntimeError("this step context has no logger: it runs outside an engine")
        return self.on_logger(self)

    def heartbeat(self, details: object = None) -> None:
        """Say that the step is alive; `details` is seen by the next attempt."""
        if self.on_heartbeat is not None:
            self.on_heartbeat(details)

    def resource(self, type: type[T], /) -> T:
        """The resource of this type given to the engine.

        Raises NotFound, or InvalidRequest when several objects are of this type.
        """
        if self._resources is None:
            raise NotFound(
                f"no resource of type {type.__name__}: pass one in Engine(resources=[...])"
            )
        return self._resources.find(type)


CURRENT: ContextVar[StepContext] = ContextVar("perdure_step")


def current_step() -> StepContext:
    """The attempt this code runs in. Raises LookupError outside a step run by an engine."""
    try:
        return CURRENT.get()
    except LookupError:
        raise LookupError("current_step() works only inside a step that an engine runs") from None
