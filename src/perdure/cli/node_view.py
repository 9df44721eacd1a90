"""A node of a run as people see it, and what happened to one, in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from perdure.cli.calls import waiting
from perdure.cli.output import moment_near

#: Of a task that is not resolved.
OPEN: Final = ("pending", "waiting")


class NodeView(msgspec.Struct):
    """A node that was reached. `attempt` counts from 1, 0 = none was needed. `since`: when the
    attempt or the wait began, or is due. `lost`: how often a process died while it was under way.
    `wake_at`: when a wait is over; `signal`: what it waits for, if for one."""

    node: str
    status: str
    attempt: int = 0
    since: datetime | None = None
    ended: datetime | None = None
    input: Any = None
    output: Any = None
    failure: Mapping[str, Any] | None = None
    branches: list[str] | None = None
    lost: int = 0
    wake_at: datetime | None = None
    signal: str | None = None
    #: The run that it asks for, `workflow/id`, and whether that was made for it, once it is there.
    child: str | None = None
    made: bool | None = None
    #: How many attempts there are at most, where the record says it.
    most: int | None = None
    #: What earlier attempts, and the last one, came to: (attempt, failure).
    errors: list[tuple[int, Mapping[str, Any]]] = []

    @property
    def seconds(self) -> float | None:
        """How long the last attempt, or the wait, took, where it has ended."""
        if self.since is None or self.ended is None:
            return None
        return (self.ended - self.since).total_seconds()

    @property
    def waits(self) -> str:
        """What it waits for, in words: "waits for signal approved until 12:00:00"."""
        until = "" if self.wake_at is None else f"until {moment_near(self.wake_at)}"
        return waiting(self.node, self.signal, until)


class Change(msgspec.Struct, frozen=True):
    """One thing that happened to a node, in words; `node` "" = to the run."""

    time: datetime
    node: str
    text: str
