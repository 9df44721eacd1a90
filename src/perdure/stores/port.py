"""The Store port: what a store is asked, what it answers, and what is atomic.

The journal's key (run, seq) is the fence: an append at a seq that another writer took is
refused, whoever thinks to own the run. The two hot calls, `commit` and `start`, answer through
a callback so that memory can answer before it returns and SQLite from its writer thread with
one wake-up for a whole batch; everything else is an ordinary coroutine.

All times are µs since the epoch, by the store's clock where the store decides. Run keys are the
16 bytes of a UUIDv7 made by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

import msgspec

from perdure.model.status import RunStatus

if TYPE_CHECKING:
    from perdure.stores.children import Outgoing
    from perdure.stores.moving import SavedRun

NEVER = 2**63 - 1

#: How long a run that could not be loaded is left alone before it is due again, in µs.
GIVEN_BACK_FOR = 2_000_000

#: How long a lease lasts without a beat, in µs.
LEASE = 30_000_000

#: From so many crashes in a row on, a run is claimed alone: the blame for the next one is exact.
LONE_CRASHES = 3
#: After more crashes in a row than this, a run is stalled instead of claimed.
CRASH_LIMIT = 20

#: A finished run is not purged before it ended this long ago, in µs: late answers find it.
PURGE_AFTER = 10 * LEASE


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


class Park(msgspec.Struct, frozen=True):
    """Let a waiting run go without a journal row, due again at `ready_at`; only if it is still
    the owner's at this epoch, nothing was posted since `read`, and its last row says `read` too:
    what is only read in memory would be lost (rule 4)."""

    run: bytes
    epoch: int
    read: int
    ready_at: int


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


class JournalRow(msgspec.Struct, gc=False):
    """Everything of one run that becomes durable together.

    (writer, commit) identify the try: the same bytes sent again after an unknown outcome are
    recognised as `mine`. Number tries from 1: 0 is the store's own. `epoch` is checked only when
    a `change` rides along. `payloads` are the values over 4 KiB that `body` refers to by number.
    `read`: how many messages the run has applied, this row's included; never less than the row
    before says. `outgoing`: what becomes of other runs with the row, in this order, in its
    transaction (see stores/children.py); a run's first row carries none.
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


#: accepted: durable now. mine: an earlier try of these very bytes was already durable.
#: refused: another writer took this seq or the run, or the change's owner/epoch no longer
#: holds, or the run has ended or is not there: nothing of this row was written; drop the run.
#: busy: try again later.
Verdict: TypeAlias = Literal["accepted", "mine", "refused", "busy"]
CommitDone: TypeAlias = Callable[[Sequence[Verdict] | Exception], None]


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


class WorkerInfo(msgspec.Struct, frozen=True, gc=False):
    """A process that owns runs. `id` is fresh at each registration and never used again."""

    id: str
    name: str
    host: str
    pid: int


class WorkerSeen(msgspec.Struct, frozen=True, gc=False):
    """A registered worker. `alive` False: its process is gone or its lease is over, and whoever
    sweeps next frees what it holds."""

    info: WorkerInfo
    alive: bool


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


class RunQuery(msgspec.Struct, frozen=True, gc=False):
    """Which runs `find` lists, newest first (by `created`, then key). No `status` means all;
    `created_after` leaves out its own moment. `before`: the key of the last run of the page
    before (keyset paging)."""

    definition: str | None = None
    status: tuple[RunStatus, ...] = ()
    created_after: int | None = None
    before: bytes | None = None
    limit: int = 100


class Store(Protocol):
    """What keeps runs. Safe to use from one event loop; every method may raise StoreError
    (transient: try again) unless it says otherwise."""

    @property
    def durable(self) -> bool:
        """False for memory: nothing outlives the process, and every call answers at once."""

    async def open(self) -> None:
        """Create or migrate the schema, or check it. A database written by a newer perdure, or
        one that is corrupt or not perdure's, is a clear StoreError and is left untouched."""

    async def close(self) -> None:
        """Finish what is under way, then release everything."""

    def now(self) -> int:
        """The store's clock."""

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        """Append rows, at most one per run, in one transaction; answers per row, in order.

        A refused row leaves no trace and does not hinder the others. With a StoreError as the
        answer the outcome is unknown or nothing was written: send the same rows again. With any
        other exception nothing was written, and some row among these never can be.
        `done` is called exactly once, on the event loop's thread, maybe before this returns.
        """

    def start(self, runs: Sequence[NewRun], done: StartDone) -> None:
        """Insert runs with their first journal rows, in a transaction of its own lane.

        A run may end with its first row (`first.change` is a Finish): it is inserted finished,
        without an owner. `done` is called as for `commit`.
        """

    async def load(self, key: bytes) -> LoadedRun:
        """A run and its journal. Raises NotFound."""

    async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
        """Into mailboxes, in one transaction; an answer per message, in order. A run without an
        owner becomes due now, unless it is stalled still. Parking and posting cannot miss each
        other. Safe to repeat after a StoreError: what was posted is duplicate."""

    async def mail(self, key: bytes, after: int) -> Sequence[Mail]:
        """A run's messages with a number over `after`, in order."""

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        """Let waiting runs go; per run whether it was let go. False: there is mail, or the run is
        not this worker's any more. Not to be repeated after a StoreError: drop the run, the next
        beat settles it."""

    async def mailed(self, worker: str) -> Mapping[bytes, int]:
        """Of the runs under this worker's name, those with more mail than their last row's
        `read`: key -> the number of the newest message. It writes nothing: for after a hint."""

    async def beat(self, worker: str) -> Beat:
        """Extend the worker's lease by the store's clock, say what it holds, and free what dead
        and expired workers held (as `sweep`). One whose lease ran out lives on as long as nobody
        declared it dead."""

    def extend(self, worker: str) -> bool:
        """The first half of a beat, for a thread beside the event loop: waits for the store, and
        may be called from any thread while the store is open. False: declared dead. Raises
        StoreError."""

    async def claim_finished(self, worker: str, definition: str, id: str) -> Claim:
        """Own a finished run for a retry: owner set, epoch + 1. Commit a row with a Reopen, or
        `give_back` the claim. Raises NotFound, RunActive, StoreError when another retries it."""

    async def purge(self, limit: int) -> int:
        """Forget finished runs past their `purge_at`, with everything of theirs, the longest due
        first, at most `limit`; how many. Never one that ended less than ten leases ago, nor one
        that is claimed for a retry. And, not counted, rows from before a Continue."""

    def subscribe(
        self, call: Callable[[], None], posted: PostedCall | None = None
    ) -> Callable[[], None]:
        """Call (soon, on the running loop) when something may be due or have mail, as far as the
        store can notice, also by other processes: a hint, no promise. Of messages posted through
        this very object `posted`, where given, is told instead. What it returns ends it, and so
        does closing the store."""

    async def rows(self, key: bytes, after: int) -> Sequence[StoredRow]:
        """A run's journal rows over `after`, in order, from its last Continue on: to follow it."""

    async def save(self, key: bytes) -> SavedRun:
        """Everything of a run as of one moment. Raises NotFound."""

    async def restore(self, saved: SavedRun, purge_at: int | None) -> Started:
        """Insert a run that another store saved, with its journal and mail, all or nothing. It has
        no owner, and is due only when something is posted to it. Its definition becomes known and
        never the latest of a name that has others. exists, mine: nothing was written."""

    async def payloads(self, key: bytes, refs: Sequence[tuple[int, int]]) -> list[bytes]:
        """The large values at (seq, n), in order. Raises PayloadMissing."""

    async def define(self, definition: StoredDefinition) -> None:
        """Make a definition known; the same hash again changes its `max_duration` alone."""

    async def publish(self, definition: StoredDefinition, *, relabel: bool = False) -> None:
        """Make a definition the latest of its name, also one that is known: its `created` is then
        this one's, or just after that of every other of the name, whichever is later. Raises
        InvalidRequest (stores/labels.py) where another has its label, unless `relabel`."""

    async def definitions(self, name: str | None = None) -> Sequence[DefinitionSeen]:
        """The definitions of this name, or all: by name, the latest first."""

    async def definition(self, hash: str) -> StoredDefinition:
        """A published definition. Raises NotFound."""

    async def latest_definition(self, name: str) -> StoredDefinition:
        """The definition of this name that was published last. Raises NotFound."""

    async def register(self, worker: WorkerInfo) -> int:
        """Enter a worker, with a lease, and free what dead workers held: for each of their runs a
        Claimed record at the next seq (the fence moves), no owner, epoch + 1, crashes + 1, due
        now. A finished run that one claimed for a retry only loses its owner. Dead is whose
        process is gone, as far as the store can tell, or whose lease has run out. Returns how many
        runs were freed."""

    async def sweep(self, worker: str) -> int:
        """Free what workers that died since hold, as `register` does; how many runs. Recovery is
        this sweep, repeated, and not an event that can be missed."""

    async def unregister(self, worker: str) -> None:
        """The worker leaves; runs it still holds are freed, due now, without counting a crash."""

    async def workers(self) -> Sequence[WorkerSeen]:
        """The registered workers."""

    async def claim_runs(
        self, worker: str, definitions: Sequence[str], limit: int
    ) -> Sequence[Claim]:
        """Take due runs of these definitions (names), earliest first: owner set, epoch + 1, and
        `ready_at` kept: nobody had the run since. One with LONE_CRASHES or more comes alone, though
        more may be due: ask again until nothing comes. One past CRASH_LIMIT is stalled until its
        deadline instead. A stalled run whose time has come (Stall.until) is due like any other."""

    async def give_back(
        self, worker: str, claim: Claim, stalled: str | None, until: int = NEVER
    ) -> None:
        """Undo a claim of a run that could not be loaded: no owner, due again after a short
        while, or stalled with the reason (see Stall). Where somebody has acted since the claim, by
        an "unpause" or "cancel" with a number over `claim.mail`, it is due now instead of stalled.
        A finished one only loses its owner. Nothing happens if the claim does not hold any more."""

    async def unstall(self, definitions: Sequence[str]) -> int:
        """Make stalled, unfinished runs of these definitions due now, but for those past
        CRASH_LIMIT, which wait for an "unpause" or a "cancel". How many there were."""

    async def find(self, query: RunQuery) -> Sequence[RunRow]:
        """Runs for people to look at."""

    async def describe(self, definition: str, id: str) -> RunRow:
        """One run. Raises NotFound."""
