"""What a store answers: verdicts on what was written, and what it keeps as it is read back.

Answers are as of one moment and stay as they are: who needs to know whether a run is still so
writes, and sees whether the row is taken.

All times are µs since the epoch, by the store's clock where the store decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec

from perdure.model.status import RunStatus
from perdure.stores.rows import Message, WorkerInfo


class Posted(msgspec.Struct, frozen=True):
    """What became of a message. posted: it has number `n` in the mailbox of the run `key`, for
    good. duplicate: its id was there already, as number `n`, whatever became of the run since.
    finished: the run has ended. missing: there is no such run (`key` is empty)."""

    outcome: Literal["posted", "duplicate", "finished", "missing"]
    n: int = 0
    key: bytes = b""


#: Told of messages just posted, and of the answers to them.
PostedCall: TypeAlias = Callable[[Sequence[Message], Sequence[Posted]], None]


class Mail(msgspec.Struct, frozen=True):
    """A message in a run's mailbox; `n` counts from 1 without gaps."""

    n: int
    id: str
    kind: str
    name: str = ""
    body: bytes | None = None


class Beat(msgspec.Struct, frozen=True):
    """The answer to a beat. `alive` False: this worker was declared dead, its runs are others':
    it drops all of them and registers under a new id. `until`: its lease now ends then, by the
    store's clock `now`. `held`: keys of the runs under its name, also finished ones claimed for
    a retry; `mail`: as `mailed`."""

    alive: bool
    now: int
    until: int
    held: frozenset[bytes] = frozenset()
    mail: Mapping[bytes, int] = {}


#: accepted: durable now. mine: an earlier try of these very bytes was already durable.
#: refused: another writer took this seq or the run, or the change's owner/epoch no longer
#: holds, or the run has ended or is not there: nothing of this row was written; drop the run.
#: busy: try again later.
Verdict: TypeAlias = Literal["accepted", "mine", "refused", "busy"]
CommitDone: TypeAlias = Callable[[Sequence[Verdict] | Exception], None]


class Started(msgspec.Struct, frozen=True, gc=False):
    """Per new run: created; exists (another run has this definition and id: `key` is its); mine
    (this very key is there: an earlier try was accepted)."""

    outcome: Literal["created", "exists", "mine"]
    key: bytes


StartDone: TypeAlias = Callable[[Sequence[Started] | Exception], None]


class RunRow(msgspec.Struct, frozen=True, gc=False):
    """A run as the store sees it. `failure` is JSON of a FailureRecord. `output` is None also
    when `output_at` (seq, n) says where a large one stands. `crashes` counts takeovers since the
    last row that was not one. `mail`: messages ever posted. `not_before`: of a delayed start, when
    it was to begin; a message may have made it due earlier."""

    key: bytes
    definition: str
    id: str
    version: str
    hash: str
    status: RunStatus
    created: int
    owner: str | None
    epoch: int
    ready_at: int
    base_seq: int
    crashes: int
    finished: int | None = None
    deadline: int | None = None
    stalled: str | None = None
    metadata: bytes = b"{}"
    output: bytes | None = None
    output_at: tuple[int, int] | None = None
    failure: bytes | None = None
    mail: int = 0
    not_before: int = 0


class StoredRow(msgspec.Struct, frozen=True, gc=False):
    """A journal row read back."""

    seq: int
    at: int
    writer: str
    body: bytes
    read: int = 0


class LoadedRun(msgspec.Struct, frozen=True, gc=False):
    """A run with its journal from `base_seq` on; large payloads stay where they are. `mail`: the
    messages that its last row has not read yet."""

    run: RunRow
    journal: Sequence[StoredRow]
    mail: Sequence[Mail] = ()


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A run now owned by the claimer, at this epoch. `crashes`: how often in a row its owners
    died without a row of progress; `mail`: the messages ever posted to it by then."""

    key: bytes
    definition: str
    hash: str
    epoch: int
    crashes: int = 0
    mail: int = 0


class WorkerSeen(msgspec.Struct, frozen=True, gc=False):
    """A registered worker. `alive` False: its process is gone or its lease is over, and whoever
    sweeps next frees what it holds."""

    info: WorkerInfo
    alive: bool


class DefinitionSeen(msgspec.Struct, frozen=True, gc=False):
    """A published definition without its source, and how many of its runs go on and have ended.
    `created`: when it was first known, or last published."""

    hash: str
    name: str
    version: str
    kind: str
    created: int
    running: int
    ended: int
