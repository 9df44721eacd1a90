"""Onward: the transition that most rows hold, as one record.

A task completed, and the one task that follows it was created and dispatched. Three actions say
that (`actions`), and whoever reads journals or looks on is given those; whoever decides, writes and
carries out step after step makes one object of it, and one record.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import msgspec

from perdure.kernel.actions import (
    AnyAction,
    CompleteTask,
    CreateTask,
    DispatchTask,
    RawOrNone,
    Transition,
)


class Onward(msgspec.Struct, omit_defaults=True, gc=False):
    """At one time (µs since the epoch), `attempt` of `task` at `node` completed with `output`, and
    `next_task` at `next` was created on `input`, and is to run. The other fields are those of the
    three actions. Recorded as it stands, like a Transition: a field's meaning never changes."""

    at: int
    task: str
    node: str
    next_task: str
    next: str
    output: RawOrNone = None
    input: RawOrNone = None
    attempt: int = 0
    queue: str | None = None
    attempts: int = 1
    digest: str | None = None
    output_ref: int | None = None
    input_ref: int | None = None

    #: As of a Transition: it is never one that changed nothing.
    ignored: ClassVar[None] = None
    signal_delivered: ClassVar[bool] = False

    @property
    def actions(self) -> list[AnyAction]:
        """What it orders, made anew each time it is asked for."""
        return [
            CompleteTask(self.task, self.node, self.attempt, self.output, self.output_ref),
            self.created,
            DispatchTask(self.next_task, self.next, 0, 0, self.queue, self.attempts),
        ]

    @property
    def created(self) -> CreateTask:
        """The second of these."""
        return CreateTask(
            self.next_task, self.next, "pending", self.input, self.input_ref, digest=self.digest
        )


#: What one event led to.
Decided: TypeAlias = Transition | Onward


def plain(made: Decided) -> Transition:
    """The same, action by action."""
    if type(made) is Transition:
        return made
    return Transition(made.at, made.actions)
