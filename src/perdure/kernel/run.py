"""Run: the snapshot a machine decides on. It is what folding the run's journal gives.

Per node only what routing needs: no input, no output (G-20). `nodes` holds reached nodes only
(G-19). NodeState is frozen and replaced whole, so that a rollback is putting the old one back.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw

from perdure.kernel.moves import NEW
from perdure.kernel.notes import NO_NOTES, Notes
from perdure.model.errors import InvalidRequest, RunFinished
from perdure.model.failure import FailureRecord

FORWARD: Final = "forward"
COMPENSATING: Final = "compensating"
#: The waiting node that bounds how long a run that is to stop may take to do so.
GRACE: Final = "~grace"


class ChildState(msgspec.Struct, frozen=True, gc=False):
    """The run that a call waits for. `created`: whether it was made for this call; None while that
    is not known. `typed`: its values are the typed doors'. `stopping`: it was asked to end, which
    is waited for."""

    definition: str
    id: str
    detached: bool = False
    created: bool | None = None
    typed: bool = False
    stopping: bool = False


class NodeState(msgspec.Struct, frozen=True, gc=False):
    """A reached node: its task, where it stands, and a SWITCH's recorded choice.

    `branches`: None = none recorded; () = recorded, nothing chosen. `completed_no`: its
    place among the run's completions and unknown ends, from 1; 0 = neither. `first_due`: when its
    first attempt could begin, while one is pending; 0 = none is.
    """

    task: str
    status: str
    attempt: int = 0
    branches: tuple[str, ...] | None = None
    completed_no: int = 0
    first_due: int = 0
    #: While a repeated attempt is pending: when it is due; 0 = it was dispatched at once, or is of
    #: a child that has been asked for.
    not_before: int = 0
    #: While waiting, also for a child: when the timer is due (None = there is none), and the
    #: signal it awaits.
    wake_at: int | None = None
    awaited_signal: str | None = None
    #: Of a pending call that waits for another run, or is to ask for one again.
    child: ChildState | None = None
    #: Of a run that can undo: an attempt ended, and nobody knows what it did (kernel.untold).
    unknown: bool = False


class KeptSignal(msgspec.Struct, frozen=True, gc=False):
    """A signal that came before any node waited for it. `payload` None: it stands apart, and is
    asked for with a Load; a signal without a payload is kept as `null`."""

    id: str
    name: str
    payload: Raw | None = None


class Run(msgspec.Struct, gc=False):
    """One run, as far as decisions need it. `at`: the time of the last recorded transition."""

    definition: str = ""
    id: str = ""
    version: str = ""
    hash: str = ""
    python: str = ""
    status: str = NEW
    input: Raw | None = None
    config: Raw | None = None
    metadata: dict[str, str] = {}
    deadline: int | None = None
    nodes: dict[str, NodeState] = {}
    active: int = 0
    #: How many completions there were; a retry takes none back, so that their numbers grow.
    completed: int = 0
    #: The failed nodes and why, in the order in which they failed.
    failures: tuple[tuple[str, FailureRecord], ...] = ()
    #: How many of these are of before the last retry: they do not count for on_failure.
    old_failures: int = 0
    #: Whether some node's task was ever canceled, also if that node was reset since.
    gave_up: bool = False
    #: Kept signals, oldest first.
    signals: tuple[KeptSignal, ...] = ()
    paused: bool = False
    #: Of a workflow: its function was called; and why its code is to end, once it is; of a graph
    #: with undos, why nothing begins any more.
    begun: bool = False
    stopping: FailureRecord | None = None
    #: Of such a graph: "failure", "timeout" or "cancel", once it is known; whether it is undoing
    #: what it did; and the nodes of which nobody knows what they did.
    reason: str = ""
    phase: str = FORWARD
    unknown: tuple[str, ...] = ()
    #: While it undoes: what had completed by then, or may have, in that order.
    done: tuple[str, ...] = ()
    #: What steps noted for later ones.
    noted: Notes = NO_NOTES
    #: How often a workflow began, this time included.
    life: int = 1
    #: The carrier of the trace that the start belongs to: nothing is decided by it.
    trace: dict[str, str] | None = None
    crashes: int = 0
    at: int = 0

    @property
    def failed(self) -> int:
        """How many nodes failed."""
        return len(self.failures)


def put_back(run: Run, saved: Run) -> None:
    """Restore the fields that are not per node from a shallow copy."""
    for name in Run.__struct_fields__:
        if name != "nodes":
            setattr(run, name, getattr(saved, name))


def require_running(run: Run) -> None:
    """For requests that only a running run can take. Raises RunFinished, InvalidRequest."""
    if run.status == NEW:
        raise InvalidRequest("the run has not started yet")
    if run.status != "running":
        raise RunFinished(f"the run is {run.status}")
