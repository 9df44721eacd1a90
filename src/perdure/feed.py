"""Feed: what an engine tells its program about its runs, after it became durable.

    @engine.listen(WorkflowFailed)
    async def page(event: WorkflowFailed) -> None: ...

A listener gets the events of the class it names, those of subclasses included. It hears what this
engine does and records; what another process does is that one's to tell. Events carry no inputs
and outputs: ask the run for those.

A client has events of its own, `ClientEvent`s: what it asked for and what was granted, wherever the
run is worked on. They say nothing of how runs end.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from perdure.model.errors import Failure

__all__ = [
    "ClientEvent", "ReportIgnored", "RunCanceled", "RunEvent", "RunSignaled", "RunStarted",
    "StepCompleted", "StepEvent", "StepFailed", "StepRetrying", "StepSkipped", "StepStarted",
    "WaitEnded", "WaitStarted", "WorkflowCanceled", "WorkflowCompleted", "WorkflowFailed",
    "WorkflowFinished", "WorkflowPaused", "WorkflowStarted", "WorkflowUnpaused",
]  # fmt: skip


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a run; the base of all. `time`: aware, UTC."""

    workflow: str
    run_id: str
    time: datetime


class WorkflowStarted(RunEvent, frozen=True, kw_only=True):
    """A run was begun by this engine, or taken before anything of it was done."""

    version: str


class WorkflowFinished(RunEvent, frozen=True, kw_only=True):
    """A run ended, in whatever way."""


class WorkflowCompleted(WorkflowFinished, frozen=True, kw_only=True):
    """A run ended well."""


class WorkflowFailed(WorkflowFinished, frozen=True, kw_only=True):
    """A run failed. `step`: the node that failed first, "" when none did (a deadline)."""

    step: str
    failure: Failure


class WorkflowCanceled(WorkflowFinished, frozen=True, kw_only=True):
    """A run was canceled."""

    reason: str


class WorkflowPaused(RunEvent, frozen=True, kw_only=True):
    """A run starts no further attempts."""


class WorkflowUnpaused(RunEvent, frozen=True, kw_only=True):
    """A run goes on."""


class StepEvent(RunEvent, frozen=True, kw_only=True):
    """Something about a node. `step`: the node's id."""

    step: str


class StepStarted(StepEvent, frozen=True, kw_only=True):
    """An attempt (counted from 1) begins; it may be begun again after a crash."""

    attempt: int


class StepCompleted(StepEvent, frozen=True, kw_only=True):
    """An attempt's output is recorded."""

    attempt: int


class StepRetrying(StepEvent, frozen=True, kw_only=True):
    """An attempt failed, and another one begins at `next_attempt` (aware, UTC)."""

    attempt: int
    failure: Failure
    next_attempt: datetime


class StepFailed(StepEvent, frozen=True, kw_only=True):
    """A node failed for good. `attempt` 0: it never came to one."""

    attempt: int
    failure: Failure


class StepSkipped(StepEvent, frozen=True, kw_only=True):
    """No path to the node was taken."""


class WaitStarted(StepEvent, frozen=True, kw_only=True):
    """A node waits: for `signal`, or for the time `until` (both: until then at most)."""

    signal: str | None
    until: datetime | None


class WaitEnded(StepEvent, frozen=True, kw_only=True):
    """A wait is over: its time or its signal came (`failure` None), or it was given up."""

    failure: Failure | None


class ReportIgnored(StepEvent, frozen=True, kw_only=True):
    """How an attempt ended came too late to count; nothing was recorded."""

    attempt: int
    reason: str


class ClientEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A call of this client's succeeded; the base of these. `time`: aware, UTC."""

    workflow: str
    run_id: str
    time: datetime


class RunStarted(ClientEvent, frozen=True, kw_only=True):
    """The client started a run. Not told of one that was there already."""


class RunSignaled(ClientEvent, frozen=True, kw_only=True):
    """The client sent a signal, and it is kept. `signal`: its name, with its key if it has one."""

    signal: str


class RunCanceled(ClientEvent, frozen=True, kw_only=True):
    """The client asked a run to end as canceled; the run may have ended already."""
