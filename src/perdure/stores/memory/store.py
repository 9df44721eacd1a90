"""MemoryStore: the reference implementation, and the model that the SQL stores are tested against.

Dictionaries; commits complete before they return. Nothing outlives the process, but a store
object keeps its runs over `close` and `open`, so that a restart can be played out in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from perdure.model.errors import NotFound, PayloadMissing, StoreError
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
    Verdict,
    WorkerSeen,
)
from perdure.stores.children import due_by
from perdure.stores.hints import Hints
from perdure.stores.memory.children import Children
from perdure.stores.memory.claims import Claims
from perdure.stores.memory.moving import restore, save
from perdure.stores.memory.overdue import Overdue
from perdure.stores.memory.places import Places
from perdure.stores.memory.run import MemoryRun
from perdure.stores.memory.versions import define, definitions_seen, latest, latest_of_kind, publish
from perdure.stores.moving import SavedRun
from perdure.stores.paging import born
from perdure.stores.port import (
    LEASE,
    RunQuery,
)
from perdure.stores.rows import (
    NEVER,
    ChildStart,
    Finish,
    JournalRow,
    Message,
    NewRun,
    Park,
    StoredDefinition,
    WorkerInfo,
)


class MemoryStore:
    """Runs in this process's memory."""

    durable: Final = False

    def __init__(self) -> None:
        self._runs: dict[bytes, MemoryRun] = {}
        self._ids: dict[tuple[str, str], bytes] = {}
        self._places = Places()
        self._claims = Claims(self._runs, self._places, self._moved)
        self._overdue = Overdue(self._runs)
        self._definitions: dict[str, StoredDefinition] = {}
        #: Worker -> until when its lease lasts.
        self._leases: dict[str, int] = {}
        self._infos: dict[str, WorkerInfo] = {}
        self._hints = Hints()
        #: By how many it is open: an engine and clients may share the object.
        self._users = 0
        self._children = Children(self._runs, self._ids, self._post_now, self._start_child)

    async def open(self) -> None:
        """One more uses it."""
        self._users += 1

    async def close(self) -> None:
        """The runs stay for whoever holds the store; the last to leave ends the subscriptions."""
        self._users = max(self._users - 1, 0)
        if not self._users:
            self._hints.end_all()

    def now(self) -> int:
        return time.time_ns() // 1000

    def crash(self, worker: str) -> None:
        """Let a worker be dead, as if its process had been killed: for tests and simulation."""
        self._leases.pop(worker, None)

    def subscribe(
        self, call: Callable[[], None], posted: PostedCall | None = None
    ) -> Callable[[], None]:
        return self._hints.subscribe(call, posted)

    # ------------------------------------------------------------------------------- writing

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        runs = self._runs
        verdicts: list[Verdict] = []
        for row in rows:
            run, seq = runs.get(row.run), row.seq
            if (
                run is not None
                and seq > run.last
                and row.change is None
                and run.status == "running"
            ):
                run.journal[seq] = row
                run.last = seq
                verdicts.append("accepted")
                if row.outgoing:
                    self._children.after(row)
            else:
                verdicts.append(self._commit(run, row))
        done(verdicts)
        if self._children.sent:
            self._told()

    def _commit(self, run: MemoryRun | None, row: JournalRow) -> Verdict:
        """The same for a row that something rides on, or that is not the next."""
        if run is None or row.seq < run.base_seq:
            return "refused"
        if row.seq <= run.last and (found := run.journal.get(row.seq)) is not None:
            mine = found.writer == row.writer and found.commit == row.commit
            return "mine" if mine else "refused"
        if row.change is None:
            if run.status != "running":
                return "refused"
            run.append(row)
        else:
            if not run.takes(row):
                return "refused"
            run.append(row)
            run.change(row)
            self._moved(row.run, run)
        self._children.after(row)
        return "accepted"

    def start(self, runs: Sequence[NewRun], done: StartDone) -> None:
        done((self._start(runs[0]),) if len(runs) == 1 else list(map(self._start, runs)))
        if self._children.sent:
            self._told()

    def _start(self, new: NewRun) -> Started:
        key, id = new.key, new.id
        if key in self._runs:
            return Started("mine", key)
        named, ids = (new.definition, id), self._ids
        if named in ids:
            return Started("exists", ids[named])
        for former in new.former:
            if (former, id) in ids:
                return Started("exists", ids[former, id])
        ids[named] = key
        run = self._runs[key] = MemoryRun(new)
        if (owner := run.owner) is not None:
            self._places.hold(key, run, owner)
        else:
            self._moved(key, run)
            if isinstance(new.first.change, Finish):
                self._children.tell(run)
        return Started("created", key)

    def _start_child(self, start: ChildStart) -> None:
        assert start.run is not None and start.definition is not None  # noqa: PT018
        self._definitions.setdefault(start.definition.hash, start.definition)
        self._start(due_by(start.run, self.now()))

    def _told(self) -> None:
        """Let others in this process know what runs were told of one another."""
        if sent := self._children.sent:
            self._children.sent = []
            self._hints.give_posted([m for m, _ in sent], [p for _, p in sent])

    def _moved(self, key: bytes, run: MemoryRun) -> None:
        """A run has another owner or time than before."""
        self._places.put(key, run)
        due = run.owner is None and run.ready_at != NEVER
        if due and self._hints and run.ready_at <= self.now():
            self._hints.give()

    # ------------------------------------------------------------------------------- mail

    async def post(self, messages: Sequence[Message]) -> Sequence[Posted]:
        now = self.now()
        posted = [self._post(message, now) for message in messages]
        if any(one.outcome == "posted" for one in posted):
            self._hints.give_posted(messages, posted)
        return posted

    def _post_now(self, message: Message) -> Posted:
        return self._post(message, self.now())

    def _post(self, message: Message, now: int) -> Posted:
        key = self._ids.get((message.definition, message.run_id))
        if key is None:
            return Posted("missing")
        run = self._runs[key]
        if (n := run.ids.get(message.id)) is not None:
            return Posted("duplicate", n, key)
        if run.status != "running":
            return Posted("finished", 0, key)
        n = run.post(message, now)
        self._places.put(key, run)
        return Posted("posted", n, key)

    async def mail(self, key: bytes, after: int) -> Sequence[Mail]:
        run = self._runs.get(key)
        return [] if run is None else list(run.mailbox[max(after, 0) :])

    async def mailed(self, worker: str) -> Mapping[bytes, int]:
        return self._mailed(worker)

    def _mailed(self, worker: str) -> dict[bytes, int]:
        return {
            key: len(run.mailbox)
            for key, run in self._places.held(worker).items()
            if len(run.mailbox) > run.read
        }

    async def park(self, worker: str, parks: Sequence[Park]) -> Sequence[bool]:
        parked = []
        for park in parks:
            run = self._runs.get(park.run)
            done = run is not None and run.park(worker, park)
            if run is not None and done:
                self._moved(park.run, run)
            parked.append(done)
        return parked

    # ------------------------------------------------------------------------------- reading

    async def load(self, key: bytes) -> LoadedRun:
        run = self._runs.get(key)
        if run is None:
            raise NotFound(f"no run with the key {key.hex()}")
        return LoadedRun(run.shown(), run.rows(), list(run.mailbox[max(run.read, 0) :]))

    async def payloads(self, key: bytes, refs: Sequence[tuple[int, int]]) -> list[bytes]:
        run = self._runs.get(key)
        found = [None if run is None else run.payload(*ref) for ref in refs]
        if None in found:
            missing = [ref for ref, value in zip(refs, found, strict=True) if value is None]
            raise PayloadMissing(f"run {key.hex()} lacks the payloads (seq, n) {missing}")
        return [value for value in found if value is not None]

    async def find(self, query: RunQuery) -> Sequence[RunRow]:
        before = None
        if query.before is not None:
            last = self._runs.get(query.before)
            before = ((last.new.created if last else born(query.before)), query.before)
        found = [
            run
            for run in self._runs.values()
            if (query.definition is None or run.new.definition == query.definition)
            and (not query.status or run.status in query.status)
            and (query.created_after is None or run.new.created > query.created_after)
            and (before is None or (run.new.created, run.new.key) < before)
        ]
        found.sort(key=lambda run: (run.new.created, run.new.key), reverse=True)
        return [run.shown() for run in found[: max(query.limit, 0)]]

    async def describe(self, definition: str, id: str) -> RunRow:
        return self._named(definition, id).shown()

    def _named(self, definition: str, id: str) -> MemoryRun:
        key = self._ids.get((definition, id))
        if key is None:
            raise NotFound(f"no run {id!r} of {definition}")
        return self._runs[key]

    async def define(self, definition: StoredDefinition) -> None:
        define(self._definitions, definition)

    async def publish(self, definition: StoredDefinition, *, relabel: bool = False) -> None:
        publish(self._definitions, definition, relabel=relabel)

    async def definitions(self, name: str | None = None) -> Sequence[DefinitionSeen]:
        return definitions_seen(self._definitions, self._runs.values(), name)

    async def rows(self, key: bytes, after: int, limit: int) -> Sequence[StoredRow]:
        run = self._runs.get(key)
        return [] if run is None else run.rows(after, limit)

    async def save(self, key: bytes) -> SavedRun:
        run = self._runs.get(key)
        if run is None:
            raise NotFound(f"no run with the key {key.hex()}")
        return save(run, self._definitions.get(run.hash))

    async def restore(self, saved: SavedRun, purge_at: int | None) -> Started:
        started = restore(self._runs, self._ids, self._definitions, saved, purge_at)
        if started.outcome == "created" and saved.run.status != "running":
            self._children.tell(self._runs[started.key])
            self._told()
        return started

    async def definition(self, hash: str) -> StoredDefinition:
        try:
            return self._definitions[hash]
        except KeyError:
            raise NotFound(f"no definition with the hash {hash}") from None

    async def latest_definition(self, name: str) -> StoredDefinition:
        return latest(self._definitions, name)

    async def latest_definitions(self, kind: str) -> Sequence[StoredDefinition]:
        return latest_of_kind(self._definitions, kind)

    # ------------------------------------------------------------------------------- workers

    async def workers(self) -> Sequence[WorkerSeen]:
        now = self.now()
        return [WorkerSeen(self._infos[id], until > now) for id, until in self._leases.items()]

    async def register(self, worker: WorkerInfo) -> int:
        if worker.id in self._leases:
            raise StoreError(f"worker {worker.id} is registered already: take a fresh id")
        self._infos[worker.id] = worker
        self._leases[worker.id] = self.now() + LEASE
        return await self.sweep(worker.id)

    def extend(self, worker: str) -> bool:
        if worker not in self._leases:
            return False
        self._leases[worker] = self.now() + LEASE
        return True

    async def beat(self, worker: str) -> Beat:
        now = self.now()
        if worker not in self._leases:
            return Beat(False, now, now)
        until = self._leases[worker] = now + LEASE
        held = frozenset(self._places.held(worker))
        beat = Beat(True, now, until, held, self._mailed(worker))
        await self.sweep(worker)
        return beat

    async def sweep(self, worker: str) -> int:
        now = self.now()
        for id, until in list(self._leases.items()):
            if until <= now and id != worker:
                del self._leases[id]
                self._infos.pop(id, None)
        return self._claims.take_over(self._leases, worker, now)

    async def unregister(self, worker: str) -> None:
        self._leases.pop(worker, None)
        self._infos.pop(worker, None)
        self._claims.leave(worker, self.now())

    async def claim_runs(
        self, worker: str, definitions: Sequence[str], limit: int
    ) -> Sequence[Claim]:
        return self._claims.take_due(worker, definitions, limit, self.now())

    async def claim_finished(self, worker: str, definition: str, id: str) -> Claim:
        return self._claims.take_finished(worker, self._named(definition, id))

    async def give_back(
        self, worker: str, claim: Claim, stalled: str | None, until: int = NEVER
    ) -> None:
        self._claims.give_back(worker, claim, stalled, until, self.now())

    async def unstall(self, definitions: Sequence[str]) -> int:
        return self._claims.unstall(definitions, self.now())

    async def purge(self, limit: int) -> int:
        now, count = self.now(), 0
        while count < limit and (key := self._overdue.first(now)) is not None:
            run = self._runs.pop(key)
            del self._ids[run.new.definition, run.new.id]
            self._places.remove(key, run)
            self._children.forget(key)
            count += 1
        return count
