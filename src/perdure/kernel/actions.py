"""Actions: what the machine decided, as orders. Recorded in order, then carried out.

These structs are also what a journal row holds, so a field here is a promise to every stored
journal: a changed meaning needs a new tag ("CreateTask.2"), never a new reading of an old one.
`…_ref` fields are set only in recorded rows whose value stands apart (over 4 KiB): the number
of the payload within the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import msgspec
from msgspec import Raw

from perdure.model.failure import FailureRecord
from perdure.model.status import RunStatus, TaskStatus

if TYPE_CHECKING:
    RawOrNone: TypeAlias = Raw | None
else:
    # msgspec reads a Raw only where the type is exactly that: in a union it checks for the other
    # members alone. So absent is None and a recorded null is Raw(b"null").
    RawOrNone = Raw


class Action(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="do", gc=False):
    """The common base: a record with its kind in the field `do`.

    `gc=False` here and on what holds actions: none ever refers back to what holds it, so the
    garbage collector need not walk them.
    """


class OpenRun(Action, frozen=True, tag="OpenRun"):
    """The first record of every run. Times in µs since the epoch; `python` is "3.11". `trace`: the
    carrier of the trace that the start belongs to."""

    definition: str
    id: str
    version: str
    hash: str
    python: str
    input: RawOrNone = None
    input_ref: int | None = None
    config: RawOrNone = None
    config_ref: int | None = None
    metadata: dict[str, str] = {}
    deadline: int | None = None
    trace: dict[str, str] | None = None


class CreateTask(Action, frozen=True, tag="CreateTask"):
    """A node is reached and becomes a task, pending (a DispatchTask follows) or already resolved.

    `secrets`: JSON pointers into `input` whose text is a secret's template.
    """

    task: str
    node: str
    status: TaskStatus
    input: RawOrNone = None
    input_ref: int | None = None
    output: RawOrNone = None
    output_ref: int | None = None
    failure: FailureRecord | None = None
    branches: tuple[str, ...] | None = None
    secrets: dict[str, str] = {}
    #: Of a workflow's call with a large input: what the input is compared by on replay.
    digest: str | None = None
    #: Of a workflow's call that takes back what was done: the first call of which something may be
    #: taken back with it; "" where that may be any. A retry that drops this one makes that one
    #: again.
    undoes: str | None = None
    #: Of a `waiting` task: when its timer is due (µs since the epoch), and the signal it awaits.
    wake_at: int | None = None
    awaited_signal: str | None = None


class DispatchTask(Action, frozen=True, tag="DispatchTask"):
    """Run an attempt of a pending task, no earlier than `not_before` (0 = at once). `attempts`: of
    a call made by code, how many there are to be at most; for people, nothing goes by it."""

    task: str
    node: str
    attempt: int = 0
    not_before: int = 0
    queue: str | None = None
    attempts: int = 1


class CompleteTask(Action, frozen=True, tag="CompleteTask"):
    """An attempt's output is the task's. `metadata`: what it noted for later steps of its saga, by
    key."""

    task: str
    node: str
    attempt: int = 0
    output: RawOrNone = None
    output_ref: int | None = None
    metadata: dict[str, Raw] | None = None


class FailTask(Action, frozen=True, tag="FailTask"):
    """The task failed for good. `unknown`: nobody knows what this attempt, or one before, did."""

    task: str
    node: str
    attempt: int
    failure: FailureRecord
    unknown: bool = False


class RetryTask(Action, frozen=True, tag="RetryTask"):
    """`attempt` failed; attempt + 1 of the same task runs with its stored input at `not_before`.
    `unknown`: nobody knows what the one that failed did."""

    task: str
    node: str
    attempt: int
    failure: FailureRecord
    not_before: int
    unknown: bool = False


class ResolveWait(Action, frozen=True, tag="ResolveWait"):
    """A waiting task ended: its timer fired, its signal came (or never did), or it was given up."""

    task: str
    node: str
    status: TaskStatus
    output: RawOrNone = None
    output_ref: int | None = None
    failure: FailureRecord | None = None


class BufferSignal(Action, frozen=True, tag="BufferSignal"):
    """A signal that no node waits for yet is kept. `signal` is the message's id."""

    signal: str
    name: str
    payload: RawOrNone = None
    payload_ref: int | None = None


class ConsumeSignal(Action, frozen=True, tag="ConsumeSignal"):
    """A kept signal was taken by a node."""

    signal: str
    node: str


class CancelTasks(Action, frozen=True, tag="CancelTasks"):
    """The named nodes' active tasks end failed (or, draining, canceled), for this reason.
    `unknown`: an attempt of theirs was begun, and nobody knows what it did."""

    failure: FailureRecord
    nodes: tuple[str, ...] = ()
    status: TaskStatus = "failed"
    unknown: bool = False


class ReopenRun(Action, frozen=True, tag="ReopenRun"):
    """A finished run goes on: the reset nodes' tasks are forgotten, the rest is kept. Input and
    config replace the old ones where given. `kept`: of a workflow, how many transitions of the
    journal its code is replayed from; what was decided after them is forgotten."""

    version: str
    hash: str
    reset: tuple[str, ...]
    input: RawOrNone = None
    input_ref: int | None = None
    config: RawOrNone = None
    config_ref: int | None = None
    deadline: int | None = None
    kept: int | None = None


class StartChild(Action, frozen=True, tag="StartChild"):
    """A run of `definition` with this id is to be there, on the input of the call's task: made,
    unless there is one. `detached`: the call waits for no end, and owns nothing. `attempt`: of a
    node that is tried again, from 0. `wake_at`: when the call gives up waiting (µs since the
    epoch)."""

    task: str
    node: str
    definition: str
    id: str
    detached: bool = False
    attempt: int = 0
    wake_at: int | None = None


class ChildFound(Action, frozen=True, tag="ChildFound"):
    """The run that a call asked for is there; `created`: made for this call, which owns it.
    `typed`: its values are recorded as the codec of the typed doors writes them."""

    task: str
    node: str
    created: bool
    typed: bool = False


class CancelChild(Action, frozen=True, tag="CancelChild"):
    """The call waits for the child's end no more. The child that was created for it is asked to
    end, one that it joined is left alone. `attempt` as in StartChild. `awaited`: the child was
    created for the call and is asked to end, and its end is waited for all the same."""

    task: str
    node: str
    definition: str
    id: str
    attempt: int = 0
    awaited: bool = False


class BeginRun(Action, frozen=True, tag="BeginRun"):
    """A workflow's function is called. `deadline`: the run's, where OpenRun did not say it: it was
    started by name, where the code was not."""

    deadline: int | None = None


class Continued(Action, frozen=True, tag="Continued"):
    """A workflow's run goes on as new, on this input: what it did before is forgotten. The row
    that holds it is the journal's new beginning, so it says again what OpenRun said; kept signals
    follow it."""

    definition: str
    id: str
    version: str
    hash: str
    python: str
    input: RawOrNone = None
    input_ref: int | None = None
    config: RawOrNone = None
    config_ref: int | None = None
    metadata: dict[str, str] = {}
    deadline: int | None = None
    paused: bool = False
    #: How often the run has begun, this time included.
    life: int = 2
    trace: dict[str, str] | None = None


class RequestStop(Action, frozen=True, tag="RequestStop"):
    """A workflow's code is to end, because of a cancel or its deadline; it may clean up first. Of a
    graph with undos: nothing begins any more, and attempts under way are asked to stop and awaited.
    `reason`: of a graph, why it ends (see BeginCompensation); what came first counts."""

    failure: FailureRecord
    reason: str = ""


class BeginCompensation(Action, frozen=True, tag="BeginCompensation"):
    """What the run's nodes did is undone, one at a time, the last completed first. `reason`:
    "failure", "timeout" or "cancel"; `failure`: what the run ends with. `unknown`: nodes that were
    given up with nobody knowing what they did."""

    reason: str
    failure: FailureRecord
    unknown: tuple[str, ...] = ()


class CompensateTask(Action, frozen=True, tag="CompensateTask"):
    """What the task did was undone."""

    task: str
    node: str


class Patched(Action, frozen=True, tag="Patched"):
    """A workflow's code reached a guarded change live: it takes the new way, also on replay."""

    id: str


class SetPaused(Action, frozen=True, tag="SetPaused"):
    """Dispatches are held, or go on."""

    paused: bool


class Ignored(Action, frozen=True, tag="Ignored"):
    """A message was read and changed nothing, for this reason. Recording it is what consumes it."""

    reason: str


class Refused(Action, frozen=True, tag="Refused"):
    """A message was read and does not apply to this run."""

    error: str


class Claimed(Action, frozen=True, tag="Claimed"):
    """Another worker took the run from one that died. Written by the store, never decided."""

    worker: str


class FinishRun(Action, frozen=True, tag="FinishRun"):
    """The run ends."""

    status: RunStatus
    output: RawOrNone = None
    output_ref: int | None = None
    failure: FailureRecord | None = None


AnyAction: TypeAlias = (
    OpenRun
    | CreateTask
    | DispatchTask
    | CompleteTask
    | FailTask
    | RetryTask
    | ResolveWait
    | BufferSignal
    | ConsumeSignal
    | CancelTasks
    | ReopenRun
    | StartChild
    | ChildFound
    | CancelChild
    | BeginRun
    | Continued
    | RequestStop
    | BeginCompensation
    | CompensateTask
    | Patched
    | SetPaused
    | Ignored
    | Refused
    | Claimed
    | FinishRun
)


class Transition(msgspec.Struct, omit_defaults=True, gc=False):
    """What one event led to, at one time (µs since the epoch). Recorded as it stands.

    `ignored` says why an event changed nothing; such a transition has no actions.
    `signal_delivered`: a node took the signal at once (False: it is kept).
    """

    at: int
    actions: list[AnyAction] = msgspec.field(default_factory=list, name="do")
    ignored: str | None = None
    signal_delivered: bool = False


__all__ = [
    "Action", "AnyAction", "BeginCompensation", "BeginRun", "BufferSignal", "CancelChild",
    "CancelTasks", "ChildFound", "Claimed", "CompensateTask", "CompleteTask", "ConsumeSignal",
    "Continued", "CreateTask", "DispatchTask", "FailTask", "FinishRun", "Ignored", "OpenRun",
    "Patched", "Refused", "ReopenRun", "RequestStop", "ResolveWait", "RetryTask", "SetPaused",
    "StartChild", "Transition",
]  # fmt: skip
