"""The Store port: what a store is asked, and what is atomic.

What it is given to keep is in `rows`, what it answers in `answers`, what runs are told of one
another in `children`, and a run on its way to another store in `moving`.

The journal's key (run, seq) is the fence: an append at a seq that another writer took is
refused, whoever thinks to own the run. The two hot calls, `commit` and `start`, answer through
a callback so that memory can answer before it returns and SQLite from its writer thread with
one wake-up for a whole batch; everything else is an ordinary coroutine.

All times are µs since the epoch, by the store's clock where the store decides. Run keys are the
16 bytes of a UUIDv7 made by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from perdure.model.status import RunStatus
from perdure.stores.answers import (
    Beat,
    Claim,
    CommitDone,
    DefinitionSeen,
    LoadedRun,
    Mail,
    Posted,
    PostedCall,
    RunRow,
    StartDone,
    Started,
    StoredRow,
    WorkerSeen,
)
from perdure.stores.moving import SavedRun
from perdure.stores.rows import (
    NEVER,
    JournalRow,
    Message,
    NewRun,
    Park,
    StoredDefinition,
    WorkerInfo,
)

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
    (transient: try again) unless it says otherwise.

    Any other exception that no method names is a fault of the store's: asking again would bring it
    again. The engine logs it, and a run that cannot go on without the answer stalls with it, to be
    unpaused when the store is mended. Nothing recorded is lost by that."""

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

    async def rows(self, key: bytes, after: int, limit: int) -> Sequence[StoredRow]:
        """A run's first `limit` journal rows over `after`, in order, from its last Continue on."""

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

    async def latest_definitions(self, kind: str) -> Sequence[StoredDefinition]:
        """Of each name the one that was published last, where it is of this kind; by name."""

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
