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

from perdure.feed.events import (
    ClientEvent,
    ReportIgnored,
    RunCanceled,
    RunEvent,
    RunSignaled,
    RunStarted,
    WaitEnded,
    WaitStarted,
    WorkflowCanceled,
    WorkflowCompensationCompleted,
    WorkflowCompensationFailed,
    WorkflowCompensationStarted,
    WorkflowCompleted,
    WorkflowContinued,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowPaused,
    WorkflowRetried,
    WorkflowStarted,
    WorkflowStepCompleted,
    WorkflowStepEvent,
    WorkflowStepFailed,
    WorkflowStepRetrying,
    WorkflowStepSkipped,
    WorkflowStepStarted,
    WorkflowTimedOut,
    WorkflowUnpaused,
)
from perdure.feed.live import LiveView
from perdure.feed.record import StepSpan, WorkflowRecord
from perdure.feed.view import RunView, StepView

__all__ = [
    "ClientEvent", "LiveView", "ReportIgnored", "RunCanceled", "RunEvent", "RunSignaled",
    "RunStarted", "RunView", "StepSpan", "StepView", "WaitEnded", "WaitStarted",
    "WorkflowCanceled", "WorkflowCompensationCompleted", "WorkflowCompensationFailed",
    "WorkflowCompensationStarted", "WorkflowCompleted", "WorkflowContinued", "WorkflowFailed",
    "WorkflowFinished", "WorkflowPaused", "WorkflowRecord", "WorkflowRetried", "WorkflowStarted",
    "WorkflowStepCompleted", "WorkflowStepEvent", "WorkflowStepFailed", "WorkflowStepRetrying",
    "WorkflowStepSkipped", "WorkflowStepStarted", "WorkflowTimedOut", "WorkflowUnpaused",
]  # fmt: skip
