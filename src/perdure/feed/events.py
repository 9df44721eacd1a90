"""The events of the feed, as their listeners get them. What each says, and when, is a promise."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from perdure.model.errors import Failure


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a run; the base of all. `time`: aware, UTC."""

    workflow: str
    run_id: str
    time: datetime


class WorkflowStarted(RunEvent, frozen=True, kw_only=True):
    """A run was begun by this engine, or taken before anything of it was done. `steps`: the nodes
    of its plan, in the plan's order; none where code decides as it goes. `trigger`: what started
    it, see `perdure.feed.RunView`."""

    version: str
    steps: tuple[str, ...] = ()
    trigger: str = ""


class WorkflowRetried(RunEvent, frozen=True, kw_only=True):
    """A run that had ended was retried, by whomever, and goes on with this engine. `version`: the
    one that it goes on with, `steps` and `trigger`: as in WorkflowStarted. `standing`: how its
    steps stand, by the states of `perdure.feed.StepView`; those that are to begin, again or for
    the first time, are left out."""

    version: str
    steps: tuple[str, ...] = ()
    trigger: str = ""
    standing: Mapping[str, str] = {}


class WorkflowContinued(RunEvent, frozen=True, kw_only=True):
    """A workflow's run goes on as new (`continue_as_new`), on this version: the calls that it made
    before are forgotten, and the same names are those of new ones."""

    version: str


class WorkflowFinished(RunEvent, frozen=True, kw_only=True):
    """A run ended, in whatever way."""


class WorkflowCompleted(WorkflowFinished, frozen=True, kw_only=True):
    """A run ended well."""


class WorkflowFailed(WorkflowFinished, frozen=True, kw_only=True):
    """A run failed. `step`: the node that failed first, "" when none did (a deadline)."""

    step: str
    failure: Failure


class WorkflowTimedOut(WorkflowFailed, frozen=True, kw_only=True):
    """A run failed because it reached its deadline. `step` is ""."""


class WorkflowCanceled(WorkflowFinished, frozen=True, kw_only=True):
    """A run was canceled."""

    reason: str


class WorkflowPaused(RunEvent, frozen=True, kw_only=True):
    """A run starts no further attempts."""


class WorkflowUnpaused(RunEvent, frozen=True, kw_only=True):
    """A run goes on."""


class WorkflowCompensationStarted(RunEvent, frozen=True, kw_only=True):
    """A run is to end, and what it did is undone first. `reason`: "failure", "timeout" or
    "cancel", and `failure` says it in full. `steps`: what is to be undone, in this order."""

    reason: str
    failure: Failure
    steps: tuple[str, ...]


class WorkflowCompensationCompleted(RunEvent, frozen=True, kw_only=True):
    """Everything that was to be undone is. `steps`: in the order in which it was. The run's end is
    told next. Not told of a run of which an undo failed for good."""

    steps: tuple[str, ...]


class WorkflowStepEvent(RunEvent, frozen=True, kw_only=True):
    """Something about a node. `step`: the node's id; of an undo that of its step and `~undo`."""

    step: str


class WorkflowStepStarted(WorkflowStepEvent, frozen=True, kw_only=True):
    """An attempt (counted from 1) begins, or a child is asked for; it may be begun again after a
    crash."""

    attempt: int


class WorkflowStepCompleted(WorkflowStepEvent, frozen=True, kw_only=True):
    """An attempt's output is recorded. `attempt` 0: the node needs none, as a SWITCH."""

    attempt: int


class WorkflowStepRetrying(WorkflowStepEvent, frozen=True, kw_only=True):
    """An attempt failed, and another one begins at `next_attempt` (aware, UTC)."""

    attempt: int
    failure: Failure
    next_attempt: datetime


class WorkflowStepFailed(WorkflowStepEvent, frozen=True, kw_only=True):
    """A node failed for good. `attempt` 0: it never came to one."""

    attempt: int
    failure: Failure


class WorkflowStepSkipped(WorkflowStepEvent, frozen=True, kw_only=True):
    """No path to the node was taken, or its condition said no."""


class WorkflowCompensationFailed(WorkflowStepEvent, frozen=True, kw_only=True):
    """The undo of `step` (the step's own id) failed for good: what the step did stands, and
    somebody must look. The other steps are undone all the same, and the run's end is told later.
    """

    failure: Failure


class WaitStarted(WorkflowStepEvent, frozen=True, kw_only=True):
    """A node waits: for `signal`, or for the time `until` (both: until then at most)."""

    signal: str | None
    until: datetime | None


class WaitEnded(WorkflowStepEvent, frozen=True, kw_only=True):
    """A wait is over: its time or its signal came (`failure` None), or it was given up."""

    failure: Failure | None


class ReportIgnored(WorkflowStepEvent, frozen=True, kw_only=True):
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
