"""SqliteStore: the Store port on one SQLite file.

Says which part does what, on the writer or on a reader, and who hears of it. Opening and closing
is in database.py, all SQL in the parts.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from perdure.model.errors import InvalidOptions, StoreError
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
from perdure.stores.hints import Hints
from perdure.stores.moving import SavedRun
from perdure.stores.port import LEASE, RunQuery
from perdure.stores.rows import (
    NEVER,
    JournalRow,
    Message,
    NewRun,
    Park,
    Release,
    Reopen,
    Stall,
    StoredDefinition,
    WorkerInfo,
)
from perdure.stores.sqlite import claims, mailbox, moving, reads, versions, workers
from perdure.stores.sqlite.children import Sent, carry_out
from perdure.stores.sqlite.database import Database
from perdure.stores.sqlite.driver import Connection, data_version
from perdure.stores.sqlite.due import Due, look
from perdure.stores.sqlite.journal import commit_rows
from perdure.stores.sqlite.locks import WorkerLocks
from perdure.stores.sqlite.purge import purge
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.readers import Readers
from perdure.stores.sqlite.starts import start_runs
from perdure.stores.sqlite.watch import Watch
from perdure.stores.sqlite.writer import Done, Writer

_log = logging.getLogger("perdure.stores")

#: How long a lock of another process is waited for before it is an error, in seconds.
BUSY_TIMEOUT: Final = 5.0
#: Rows for which the loop may wait; more come of runs that work side by side.
_FEW: Final = 2
_FREES: Final = frozenset({Release, Reopen, Stall})


class SqliteStore:
    """Runs in one SQLite file.

    `synchronous`: "full" loses nothing in a power cut; "normal" loses nothing when the process
    dies, but may lose the last moments in a power cut, for commits several times as fast.
    `unsafe` lets several processes write to the file even where the SQLite library in use can
    then lose commits. `read_only`: to look at what another process may be writing; the file must
    be there, and every change is Unsupported. Raises InvalidOptions.
    """

    durable: Final = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: Literal["full", "normal"] = "full",
        unsafe: bool = False,
        read_only: bool = False,
        busy_timeout: float = BUSY_TIMEOUT,
    ) -> None:
        text = os.fspath(path)
        if not text or text.startswith(":"):
            raise InvalidOptions(f"{text!r} is no file: use MemoryStore for runs in memory")
        if synchronous not in {"full", "normal"}:
            raise InvalidOptions(f"synchronous={synchronous!r}: use 'full' or 'normal'")
        # The real path, so that all who open the file by any name share its locks.
        self.path = Path(os.path.realpath(text))
        self._timeout = busy_timeout
        self._workers = WorkerLocks(Path(f"{self.path}-workers"))
        self._database = Database(
            self.path, self._workers, safe=synchronous == "full", unsafe=unsafe,
            read_only=read_only, timeout=busy_timeout,
        )  # fmt: skip
        self._hints = Hints()
        self._watch: Watch | None = None
        self._due = Due()

    def __repr__(self) -> str:
        return f"<SqliteStore {self.path}>"

    # -------------------------------------------------------------------------- opening, closing

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        if not self._database.is_open:
            return
        self._hints.end_all()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        await self._database.close()

    def now(self) -> int:
        return time.time_ns() // 1000

    # ----------------------------------------------------------------------------------- writing

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        writer = self._database.writer
        if writer is None:
            done(self._database.no_writer())
            return
        if any(type(row.change) in _FREES or row.outgoing for row in rows):
            done = self._freeing(done)
        work = self._telling(partial(commit_rows, rows=rows), done)
        writer.submit(*work, len(rows), aside=len(rows) > _FEW)

    def _told(self, sent: Sent) -> None:
        """Let others in this process know what runs were told of one another."""
        if sent:
            self._due.changed()
            self._hints.give_posted([m for m, _ in sent], [p for _, p in sent])

    def start(self, runs: Sequence[NewRun], done: StartDone) -> None:
        writer = self._database.writer
        if writer is None:
            done(self._database.no_writer())
            return
        if any(new.owner is None for new in runs):
            done = self._freeing(done)
        work = self._telling(partial(start_runs, runs=runs), done)
        writer.submit(*work, 2 * len(runs), aside=len(runs) > _FEW)

    def _telling(self, do: Any, done: Any) -> tuple[Callable[[Connection], Any], Done[Any]]:
        """Work by which runs are told of one another, and the answer to it."""
        sent: Sent = []

        def work(db: Connection) -> Any:
            sent.clear()
            after = partial(carry_out, db, now=self.now(), sent=sent)
            return do(db, after=after)

        def answered(answer: Any) -> None:
            done(answer)
            if not isinstance(answer, Exception):
                self._told(sent)

        return work, answered

    async def define(self, definition: StoredDefinition) -> None:
        values = msgspec.structs.astuple(definition)
        await self._quiet.call(lambda db: db.execute(query("define"), values))

    async def publish(self, definition: StoredDefinition, *, relabel: bool = False) -> None:
        await self._write.call(lambda db: versions.publish(db, definition, relabel=relabel))

    async def restore(self, saved: SavedRun, purge_at: int | None) -> Started:
        sent: Sent = []
        restore = partial(moving.restore, saved=saved, purge_at=purge_at, now=self.now(), sent=sent)
        started = await self._write.call(restore)
        self._told(sent)
        return started

    async def purge(self, limit: int) -> int:
        return await purge(self._write, limit, self.now)

    # -------------------------------------------------------------------------------------- mail

    async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
        posted = await self._write.call(
            lambda db: mailbox.post(db, messages, self.now()), 2 * len(messages)
        )
        if any(one.outcome == "posted" for one in posted):
            self._hints.give_posted(messages, posted)
        return posted

    async def mail(self, key: bytes, after: int) -> Sequence[Mail]:
        return await self._read.read(lambda db: mailbox.read_mail(db, key, after))

    async def mailed(self, worker: str) -> Mapping[bytes, int]:
        return await self._read.read(lambda db: workers.read_mailed(db, worker))

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        parked = await self._write.call(lambda db: mailbox.park(db, worker, parks), len(parks))
        now = self.now()
        if any(done and one.ready_at <= now for done, one in zip(parked, parks, strict=True)):
            self._hints.give()
        return parked

    # ------------------------------------------------------------------------------------- hints

    def subscribe(
        self, call: Callable[[], None], posted: PostedCall | None = None
    ) -> Callable[[], None]:
        self._read  # noqa: B018  # raises unless the store is open
        if self._watch is None:
            self._watch = Watch(self._database.version, self._hints.give)
        return self._hints.subscribe(call, posted)

    def _freeing(self, done: Callable[[Any], None]) -> Callable[[Any], None]:
        """What is written makes runs due, now or later."""
        self._due.changed()
        if not self._hints:
            return done

        def answered(answer: Any) -> None:
            done(answer)
            self._hints.give()

        return answered

    # ----------------------------------------------------------------------------------- reading

    async def load(self, key: bytes) -> LoadedRun:
        return await self._read.read(lambda db: reads.load_run(db, key))

    async def payloads(self, key: bytes, refs: Sequence[tuple[int, int]]) -> list[bytes]:
        return await self._read.read(lambda db: reads.read_payloads(db, key, refs))

    async def definition(self, hash: str) -> StoredDefinition:
        return await self._read.read(lambda db: reads.read_definition(db, hash))

    async def latest_definition(self, name: str) -> StoredDefinition:
        return await self._read.read(lambda db: reads.read_latest_definition(db, name))

    async def latest_definitions(self, kind: str) -> Sequence[StoredDefinition]:
        return await self._read.read(lambda db: reads.read_latest_definitions(db, kind))

    async def definitions(self, name: str | None = None) -> Sequence[DefinitionSeen]:
        return await self._read.read(lambda db: versions.list_definitions(db, name))

    async def rows(self, key: bytes, after: int, limit: int) -> Sequence[StoredRow]:
        return await self._read.read(lambda db: moving.read_rows(db, key, after, limit))

    async def save(self, key: bytes) -> SavedRun:
        return await self._read.read(lambda db: moving.save(db, key))

    async def find(self, query: RunQuery) -> Sequence[RunRow]:
        return await self._read.read(lambda db: reads.find_runs(db, query))

    async def describe(self, definition: str, id: str) -> RunRow:
        def work(db: Connection) -> RunRow:
            return reads.describe_run(db, definition, id)

        # One row by its key takes less than the way to a reader's thread and back.
        writer = self._database.writer
        row = None if writer is None else writer.peek(work)
        return await self._read.read(work) if row is None else row

    # ----------------------------------------------------------------------------------- workers

    async def workers(self) -> Sequence[WorkerSeen]:
        return await self._read.read(lambda db: workers.list_workers(db, self._workers, self.now()))

    async def register(self, worker: WorkerInfo) -> int:
        write = self._write
        if not self._workers.take(worker.id):
            raise StoreError(f"worker {worker.id} is registered already: take a fresh id")
        try:
            await write.call(lambda db: workers.add_worker(db, worker, self.now()))
        except Exception:
            self._workers.drop(worker.id)
            raise
        with suppress(StoreError):  # it is registered; the next beat sweeps again
            await self._quiet.call(lambda db: workers.tidy_locks(db, self._workers))
            return await self.sweep(worker.id)
        return 0

    def extend(self, worker: str) -> bool:
        self._database.check()
        return workers.extend_beside(self.path, worker, self.now, self._timeout)

    async def beat(self, worker: str) -> Beat:
        now = self.now()
        if not await self._quiet.call(lambda db: workers.extend(db, worker, now)):
            self._workers.drop(worker)
            return Beat(False, now, now)
        if self._workers.renew(worker):
            _log.warning(
                "somebody removed the lock file of this worker from %s-workers: it is made anew, "
                "leave it there while workers work", self.path,
            )  # fmt: skip
        seen = await self._read.read(lambda db: workers.look_around(db, worker))
        if seen.lost or workers.any_dead(seen.others, self._workers, now):
            await self.sweep(worker)
        return Beat(True, now, now + LEASE, seen.held, seen.mail)

    async def sweep(self, worker: str) -> int:
        write, freed = self._write, 0
        await write.call(lambda db: workers.bury(db, self._workers, worker, self.now()))
        for dead in await write.call(workers.find_lost):
            free = partial(workers.free_some, dead=dead, worker=worker, now=self.now())
            while some := await write.call(free, workers.FREED_AT_ONCE * 3):
                freed += some
        if freed:
            self._hints.give()
        return freed

    async def unregister(self, worker: str) -> None:
        await self._write.call(lambda db: workers.leave(db, worker, self.now()))
        self._workers.drop(worker)
        self._hints.give()

    async def claim_runs(
        self, worker: str, definitions: Sequence[str], limit: int
    ) -> Sequence[Claim]:
        write, names, now = self._quiet, tuple(dict.fromkeys(definitions)), self.now()
        if limit <= 0 or self._due.none(names, write.peek(data_version), now):
            return []
        changes = self._due.changes
        found = await write.call(lambda db: look(db, worker, names, limit, now), limit)
        self._due.learn(names, changes, found)
        return found.claims

    async def claim_finished(self, worker: str, definition: str, id: str) -> Claim:
        return await self._write.call(lambda db: claims.claim_finished(db, worker, definition, id))

    async def give_back(
        self, worker: str, claim: Claim, stalled: str | None, until: int = NEVER
    ) -> None:
        give_back = claims.give_back
        await self._write.call(lambda db: give_back(db, worker, claim, stalled, until, self.now()))
        if stalled is not None:
            self._hints.give()  # somebody may have acted already

    async def unstall(self, definitions: Sequence[str]) -> int:
        freed = await self._write.call(lambda db: claims.unstall(db, definitions, self.now()))
        if freed:
            self._hints.give()
        return freed

    # ------------------------------------------------------------------------------------- parts

    @property
    def _quiet(self) -> Writer:
        """The writer, for what makes no run due."""
        return self._database.writing

    @property
    def _write(self) -> Writer:
        """The writer, for what may make some run due."""
        self._due.changed()
        return self._database.writing

    @property
    def _read(self) -> Readers:
        return self._database.reading
