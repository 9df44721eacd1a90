"""What a store is given to keep: runs, rows of their journals, and what rides on a row.

A row and all that rides on it become durable together or not at all, so that a run's state in
the store never says other than its journal. Stores keep the bytes and do not read them; who
may write a row is decided by the port's `commit`.

All times are µs since the epoch. Run keys are the 16 bytes of a UUIDv7 made by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from perdure.model.status import RunStatus

NEVER = 2**63 - 1


class Finish(msgspec.Struct, frozen=True, gc=False):
    """Rides on a journal row: the run ends, its owner lets it go. Also on a finished run that its
    short owner claimed: a retry that leads straight to an end. `output_ref`: the number of
    the payload in this row that is the output, when it is over 4 KiB (then `output` is None).
    `failure`: JSON of the FailureRecord. `version` and `hash`: of such a retry, what the run was
    retried on; otherwise None."""

    status: RunStatus
    purge_at: int
    output: bytes | None = None
    output_ref: int | None = None
    failure: bytes | None = None
    version: str | None = None
    hash: str | None = None


class Release(msgspec.Struct, frozen=True, gc=False):
    """The owner lets the run go unfinished; due again at `ready_at`, or at once (at the row's
    time) when there is more mail than its row has read."""

    ready_at: int


class Stall(msgspec.Struct, frozen=True, gc=False):
    """The run cannot go on until somebody acts, or (`until`) its deadline: it keeps the reason, and
    no owner. Where somebody has acted already, by an "unpause" or "cancel" with a number over
    `seen`, it is due at once (at the row's time) instead, its crashes forgotten."""

    reason: str
    seen: int = NEVER
    until: int = NEVER


class Reopen(msgspec.Struct, frozen=True):
    """A finished run that its short owner claimed for a retry goes on: running, without an owner,
    due at `ready_at`, on this version. Rides on the row that records ReopenRun (rule 11)."""

    version: str
    hash: str
    ready_at: int
    deadline: int | None = None


class Continue(msgspec.Struct, frozen=True, gc=False):
    """A workflow's run goes on as new: the row it rides on is where loading begins from now on, and
    nobody reads the rows before it any more; they are forgotten with the next purge at the latest.
    The run keeps its owner, its mail and how far that was read. The deadline begins anew."""

    deadline: int | None = None


RunChange: TypeAlias = Finish | Release | Stall | Reopen | Continue


class Message(msgspec.Struct, frozen=True):
    """Something for a run from outside its owner. `id` is made by the sender (a dedupe key is
    that id): posting it twice is posting it once. `kind`: "signal", "cancel", "pause",
    "unpause"; `name`: the signal's; `body`: JSON text (a signal's payload, a cancel's reason).
    The store itself posts "child-started" and "child-finished" (see stores/children.py).

    An "unpause" and a "cancel" also end a stall, and forget the crashes that led to it; they are
    then kept with the name "stalled". Apply mail before anything is dispatched."""

    definition: str
    run_id: str
    id: str
    kind: str
    name: str = ""
    body: bytes | None = None


class Park(msgspec.Struct, frozen=True):
    """Let a waiting run go without a journal row, due again at `ready_at`; only if it is still
    the owner's at this epoch, nothing was posted since `read`, and its last row says `read` too:
    what is only read in memory would be lost (rule 4)."""

    run: bytes
    epoch: int
    read: int
    ready_at: int


class JournalRow(msgspec.Struct, gc=False):
    """Everything of one run that becomes durable together.

    (writer, commit) identify the try: the same bytes sent again after an unknown outcome are
    recognised as `mine`. Number tries from 1: 0 is the store's own. `epoch` is checked only when
    a `change` rides along. `payloads` are the values over 4 KiB that `body` refers to by number.
    `read`: how many messages the run has applied, this row's included; never less than the row
    before says. `outgoing`: what becomes of other runs with the row, in this order, in its
    transaction; a run's first row carries none.
    """

    run: bytes
    seq: int
    at: int
    writer: str
    commit: int
    body: bytes
    epoch: int = 0
    read: int = 0
    payloads: Sequence[bytes] = ()
    change: RunChange | None = None
    outgoing: Sequence[Outgoing] = ()


class NewRun(msgspec.Struct, gc=False):
    """A run to insert, with its first journal row (seq 1).

    `owner` None: due at `ready_at` for whoever claims it; mail makes it due earlier, but its
    attempts are to wait until then (RunRow.not_before). A run is born at epoch 0. `hash` names the
    definition's content. `former`: names it had before; a run of one of them and this id exists.
    """

    key: bytes
    definition: str
    id: str
    version: str
    hash: str
    created: int
    first: JournalRow
    owner: str | None = None
    ready_at: int = NEVER
    deadline: int | None = None
    metadata: bytes = b"{}"
    status: RunStatus = "running"
    former: Sequence[str] = ()

    @property
    def not_before(self) -> int:
        """When a delayed start is to begin; 0 for one that is not delayed."""
        return self.ready_at if self.owner is None and self.ready_at != NEVER else 0


class WorkerInfo(msgspec.Struct, frozen=True, gc=False):
    """A process that owns runs. `id` is fresh at each registration and never used again."""

    id: str
    name: str
    host: str
    pid: int


class StoredDefinition(msgspec.Struct, frozen=True, gc=False):
    """A published definition: `hash` is its identity, `source` what it is rebuilt from.
    `max_duration`: how long its runs may take, in µs; None: no end, or it is not known."""

    hash: str
    name: str
    version: str
    kind: str
    source: bytes
    created: int
    max_duration: int | None = None


class ChildStart(msgspec.Struct, frozen=True, gc=False):
    """A call (`task`, of `node`) of the run whose row this rides on asks for the run of this name
    (definition, id). Unless it is there, `run` is made, and its `definition` becomes known. The
    call's run is told by a message "child-started", whether it was made for this call; and if the
    call `waits`, by "child-finished" how it ended: at once where it has, else with the row that
    ends it. Where none is there and `run` is None, "child-finished" says failed, with `refusal`,
    JSON of the FailureRecord. `former`: names that its definition had before; a run with one of
    them and the id is the one that is asked for. `typed`: whether its definition is of a typed
    door.

    All in the transaction of the row, and each once: asked again for the same task, only what is
    missing is done (after a move to another store: to wait again). A task is one call of one run:
    for a task that waits already, nothing is done, whoever asks."""

    task: str
    node: str
    name: tuple[str, str]
    run: NewRun | None
    definition: StoredDefinition | None
    refusal: bytes | None = None
    waits: bool = True
    former: Sequence[str] = ()
    typed: bool = False

    @property
    def names(self) -> list[tuple[str, str]]:
        """Under which the run may be."""
        return [self.name, *((name, self.name[1]) for name in self.former)]


class ChildCancel(msgspec.Struct, frozen=True, gc=False):
    """The call waits for its child no more: it is told nothing from now on. A child that was made
    for it, and has not ended, is sent a "cancel"."""

    task: str
    reason: str


#: What a row may carry besides: messages to any run (also its own), in the row's transaction.
Outgoing: TypeAlias = ChildStart | ChildCancel | Message
