"""MemoryStore: the reference implementation, and the model that the SQL stores are tested against.

Dictionaries; commits complete before they return. Nothing outlives the process, but a store
object keeps its runs over `close` and `open`, so that a restart can be played out in memory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from perdure.model.errors import NotFound, StoreError
from perdure.model.status import RunStatus
from perdure.stores.paging import born
from perdure.stores.port import (
    GIVEN_BACK_FOR,
    NEVER,
    Claim,
    CommitDone,
    Finish,
    JournalRow,
    LoadedRun,
    NewRun,
    Release,
    RunQuery,
    RunRow,
    StartDone,
    Started,
    StoredDefinition,
    StoredRow,
    Verdict,
    WorkerInfo,
)
from perdure.stores.takeover import TAKEOVER_COMMIT, takeover_body


class _Run:
    """A run row with its journal and payloads. `claimed_seq`: the row of the last takeover."""

    __slots__ = (
        "base_seq", "claimed_seq", "crashes", "epoch", "failure", "finished", "journal", "new",
        "output", "output_at", "owner", "payloads", "ready_at", "stalled", "status",
    )  # fmt: skip

    def __init__(self, new: NewRun) -> None:
        self.new = new
        self.status: RunStatus = new.status
        self.owner = new.owner
        self.ready_at = new.ready_at
        self.epoch = 0
        self.base_seq = 1
        self.crashes = 0
        self.claimed_seq = 0
        self.finished: int | None = None
        self.stalled: str | None = None
        self.output: bytes | None = None
        self.output_at: tuple[int, int] | None = None
        self.failure: bytes | None = None
        self.journal: dict[int, tuple[int, str, int, bytes, int]] = {}
        self.payloads: dict[tuple[int, int], bytes] = {}

    def append(self, row: JournalRow) -> None:
        self.journal[row.seq] = (row.at, row.writer, row.commit, row.body, row.read)
        for n, payload in enumerate(row.payloads):
            self.payloads[row.seq, n] = payload

    def change(self, row: JournalRow) -> None:
        """Carry out what rides on the row; the caller has checked that it may."""
        change = row.change
        self.owner = None
        if isinstance(change, Finish):
            self.status = change.status
            self.ready_at = NEVER
            self.finished = row.at
            self.output = change.output
            self.output_at = None if change.output_ref is None else (row.seq, change.output_ref)
            self.failure = change.failure
        elif isinstance(change, Release):
            self.ready_at = change.ready_at
        elif change is not None:
            self.ready_at = NEVER
            self.stalled = change.reason

    def shown(self) -> RunRow:
        new = self.new
        return RunRow(
            key=new.key,
            definition=new.definition,
            id=new.id,
            version=new.version,
            hash=new.hash,
            status=self.status,
            created=new.created,
            owner=self.owner,
            epoch=self.epoch,
            ready_at=self.ready_at,
            base_seq=self.base_seq,
            # Any row after the takeover is progress.
            crashes=self.crashes if max(self.journal, default=0) == self.claimed_seq else 0,
            finished=self.finished,
            deadline=new.deadline,
            stalled=self.stalled,
            metadata=new.metadata,
            output=self.output,
            output_at=self.output_at,
            failure=self.failure,
        )


class MemoryStore:
    """Runs in this process's memory."""

    durable: Final = False

    def __init__(self) -> None:
        self._runs: dict[bytes, _Run] = {}
        self._ids: dict[tuple[str, str], bytes] = {}
        #: Claimable runs only, so that polling does not look at all the others.
        self._free: dict[bytes, _Run] = {}
        self._definitions: dict[str, StoredDefinition] = {}
        self._workers: dict[str, WorkerInfo] = {}

    async def open(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Nothing to do: the runs stay for whoever holds the store."""

    def now(self) -> int:
        return time.time_ns() // 1000

    def crash(self, worker: str) -> None:
        """Let a worker be dead, as if its process had been killed: for tests and simulation."""
        self._workers.pop(worker, None)

    # ------------------------------------------------------------------------------- writing

    def commit(self, rows: Sequence[JournalRow], done: CommitDone) -> None:
        runs = self._runs
        verdicts: list[Verdict] = []
        for row in rows:
            run = runs.get(row.run)
            if run is None:
                verdicts.append("refused")
            elif (found := run.journal.get(row.seq)) is not None:
                mine = found[1] == row.writer and found[2] == row.commit
                verdicts.append("mine" if mine else "refused")
            elif run.status != "running" or (
                row.change is not None and (run.owner != row.writer or run.epoch != row.epoch)
            ):
                verdicts.append("refused")
            else:
                run.append(row)
                if row.change is not None:
                    run.change(row)
                    self._note_free(row.run, run)
                verdicts.append("accepted")
        done(verdicts)

    def start(self, runs: Sequence[NewRun], done: StartDone) -> None:
        done([self._start(new) for new in runs])

    def _start(self, new: NewRun) -> Started:
        if new.key in self._runs:
            return Started("mine", new.key)
        key = self._ids.setdefault((new.definition, new.id), new.key)
        if key != new.key:
            return Started("exists", key)
        run = self._runs[key] = _Run(new)
        run.append(new.first)
        if new.first.change is not None:
            run.change(new.first)
        self._note_free(key, run)
        return Started("created", key)

    def _note_free(self, key: bytes, run: _Run) -> None:
        if run.owner is None and run.status == "running" and run.stalled is None:
            self._free[key] = run
        else:
            self._free.pop(key, None)

    # ------------------------------------------------------------------------------- reading

    async def load(self, key: bytes) -> LoadedRun:
        run = self._runs.get(key)
        if run is None:
            raise NotFound(f"no run with the key {key.hex()}")
        return LoadedRun(
            run.shown(),
            [
                StoredRow(seq, at, writer, body, read)
                for seq, (at, writer, _, body, read) in sorted(run.journal.items())
                if seq >= run.base_seq
            ],
        )

    async def payloads(self, key: bytes, refs: Sequence[tuple[int, int]]) -> list[bytes]:
        held = self._runs[key].payloads if key in self._runs else {}
        missing = [ref for ref in refs if ref not in held]
        if missing:
            raise StoreError(f"run {key.hex()} lacks the payloads (seq, n) {missing}")
        return [held[ref] for ref in refs]

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
        key = self._ids.get((definition, id))
        if key is None:
            raise NotFound(f"no run {id!r} of {definition}")
        return self._runs[key].shown()

    async def define(self, definition: StoredDefinition) -> None:
        self._definitions.setdefault(definition.hash, definition)

    async def definition(self, hash: str) -> StoredDefinition:
        try:
            return self._definitions[hash]
        except KeyError:
            raise NotFound(f"no definition with the hash {hash}") from None

    async def latest_definition(self, name: str) -> StoredDefinition:
        named = [d for d in self._definitions.values() if d.name == name]
        if not named:
            raise NotFound(f"no definition with the name {name}")
        # Of two with one time, the one that came last.
        return max(reversed(named), key=lambda d: d.created)

    # ------------------------------------------------------------------------------- workers

    async def register(self, worker: WorkerInfo) -> int:
        if worker.id in self._workers:
            raise StoreError(f"worker {worker.id} is registered already: take a fresh id")
        self._workers[worker.id] = worker
        return await self.sweep(worker.id)

    async def sweep(self, worker: str) -> int:
        now, freed = self.now(), 0
        for key, run in self._runs.items():
            if run.owner is not None and run.owner not in self._workers:
                self._take_over(run, worker, now)
                self._note_free(key, run)
                freed += 1
        return freed

    def _take_over(self, run: _Run, worker: str, now: int) -> None:
        last = max(run.journal)
        at = max(now, run.journal[last][0])
        seq = last + 1
        row = (at, worker, TAKEOVER_COMMIT, takeover_body(worker, at), run.journal[last][4])
        run.journal[seq] = row
        run.crashes = run.crashes + 1 if last == run.claimed_seq else 1
        run.claimed_seq = seq
        run.owner = None
        run.epoch += 1
        run.ready_at = now

    async def unregister(self, worker: str) -> None:
        self._workers.pop(worker, None)
        now = self.now()
        for key, run in self._runs.items():
            if run.owner == worker:
                run.owner, run.ready_at = None, now
                self._note_free(key, run)

    async def claim_runs(
        self, worker: str, definitions: Sequence[str], limit: int
    ) -> Sequence[Claim]:
        now, names = self.now(), set(definitions)
        due = [r for r in self._free.values() if r.ready_at <= now and r.new.definition in names]
        due.sort(key=lambda run: (run.ready_at, run.new.key))
        claims = []
        for run in due[: max(limit, 0)]:
            run.owner = worker
            run.epoch += 1
            del self._free[run.new.key]
            claims.append(Claim(run.new.key, run.new.definition, run.new.hash, run.epoch))
        return claims

    async def give_back(self, worker: str, claim: Claim, stalled: str | None) -> None:
        run = self._runs.get(claim.key)
        if run is None or run.owner != worker or run.epoch != claim.epoch:
            return
        run.owner, run.stalled = None, stalled
        run.ready_at = NEVER if stalled is not None else self.now() + GIVEN_BACK_FOR
        self._note_free(claim.key, run)

    async def unstall(self, definitions: Sequence[str]) -> int:
        now, names, count = self.now(), set(definitions), 0
        for key, run in self._runs.items():
            if run.stalled is not None and run.new.definition in names and run.owner is None:
                run.stalled, run.ready_at = None, now
                self._note_free(key, run)
                count += 1
        return count
