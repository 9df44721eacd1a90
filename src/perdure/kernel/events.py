"""Events: what happened to a run, in the past tense. The set is closed (G-3).

Values travel as JSON text in `msgspec.Raw`: the kernel decodes one only when a template asks.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
from msgspec import Raw

from perdure.model.failure import FailureRecord
from perdure.model.status import RunStatus


class RunStarted(msgspec.Struct, frozen=True, gc=False):
    """A run was created. `start_node` overrides the definition's entry; the rest is recorded as
    it stands. `deadline` in µs since the epoch; `python` is the minor version, "3.11"; `trace` the
    carrier of the trace that the start belongs to."""

    id: str
    start_node: str | None = None
    input: Raw | None = None
    config: Raw | None = None
    metadata: dict[str, str] = {}
    python: str = ""
    deadline: int | None = None
    trace: dict[str, str] | None = None


class RunBegun(msgspec.Struct, frozen=True):
    """A workflow's run is due, on the worker that owns it: its function is to be called.
    `deadline`: for a run that was started by somebody who did not know it; µs since the epoch."""

    deadline: int | None = None


class NodeCompleted(msgspec.Struct, frozen=True, gc=False):
    """An attempt (counted from 0) ended with an output."""

    task: str
    node: str
    attempt: int
    output: Raw
    #: What the attempt noted for later ones, as JSON text by key.
    metadata: dict[str, Raw] | None = None


class NodeFailed(msgspec.Struct, frozen=True, gc=False):
    """An attempt (counted from 0) ended with a failure, or was given up on. `unknown`: whether
    nobody knows what it did: it was interrupted, say, or what it returned is lost. None: that is
    told by the kind of its failure."""

    task: str
    node: str
    attempt: int
    failure: FailureRecord
    unknown: bool | None = None


class AttemptGivenUp(msgspec.Struct, frozen=True, gc=False):
    """An attempt (counted from 0) of a run that is to stop is not under way any more, and has no
    outcome. `begun` False: it never began. Else nobody knows what it did: it was cancelled, as it
    was asked to stop, or was lost with its process."""

    task: str
    node: str
    attempt: int
    begun: bool = True


class DeadlineReached(msgspec.Struct, frozen=True, gc=False):
    """The run has taken as long as its definition lets it."""


class TimerFired(msgspec.Struct, frozen=True, gc=False):
    """A waiting node's time came: a WAIT's end, or a signal wait's timeout. `due`: the time the
    timer was armed for (D-13)."""

    task: str
    node: str
    due: int


class SignalReceived(msgspec.Struct, frozen=True, gc=False):
    """Something outside sent a named value. `id` is the message's, unique in the run; `payload`
    is JSON text or absent."""

    name: str
    id: str
    payload: Raw | None = None


class ChildStarted(msgspec.Struct, frozen=True, gc=False):
    """The run that a call asked for is there. `task`: the call (kernel.child_ids.call_id).
    `created`: it was made for this call. `typed`: its values are the typed doors'."""

    task: str
    node: str
    created: bool
    typed: bool = False


class ChildFinished(msgspec.Struct, frozen=True, gc=False):
    """The run that a call waits for has ended; or it could not be made, and never will be. `task`:
    the call (kernel.child_ids.call_id)."""

    task: str
    node: str
    status: RunStatus
    output: Raw | None = None
    failure: FailureRecord | None = None


class RunCancelled(msgspec.Struct, frozen=True, gc=False):
    """Somebody wants the run to end. An empty reason reads "cancelled"."""

    reason: str = ""


class RunRetried(msgspec.Struct, frozen=True, gc=False):
    """Somebody wants a finished run to go on, from `node` or from every failed node, on the
    definition the machine was made with. `deadline` in µs since the epoch."""

    node: str | None = None
    input: Raw | None = None
    config: Raw | None = None
    deadline: int | None = None


class RunPaused(msgspec.Struct, frozen=True, gc=False):
    """Dispatches are to be held."""


class RunUnpaused(msgspec.Struct, frozen=True, gc=False):
    """Dispatches are to go on."""


Event: TypeAlias = (
    RunStarted
    | RunBegun
    | NodeCompleted
    | NodeFailed
    | AttemptGivenUp
    | DeadlineReached
    | TimerFired
    | SignalReceived
    | ChildStarted
    | ChildFinished
    | RunCancelled
    | RunRetried
    | RunPaused
    | RunUnpaused
)
