"""A run in memory: its row, journal, payloads and mailbox, and what may be done to it.

Whoever calls has decided that something happens; this says whether it may, and what it makes of
the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Final

from perdure.model.status import RunStatus
from perdure.stores.answers import Mail, RunRow, StoredRow
from perdure.stores.rows import (
    NEVER,
    Continue,
    Finish,
    JournalRow,
    Message,
    NewRun,
    Park,
    Release,
    Reopen,
    Stall,
)
from perdure.stores.takeover import ENDS_STALL, ON_A_STALL, TAKEOVER_COMMIT, takeover_body

_NONE: Final[Mapping[str, int]] = MappingProxyType({})


class MemoryRun:
    """`last`: the number of the last row; `claimed_seq`: the row of the last takeover; `ended`: the
    row on which its Finish rode, None while it goes on; `listed`: the owner under whom Places has
    it."""

    __slots__ = (
        "base_seq", "claimed_seq", "crashes", "deadline", "ended", "epoch", "hash", "ids",
        "journal", "last", "listed", "mailbox", "new", "owner", "ready_at", "stalled", "status",
        "version",
    )  # fmt: skip

    def __init__(self, new: NewRun) -> None:
        self.new = new
        self.version = new.version
        self.hash = new.hash
        self.deadline = new.deadline
        self.status: RunStatus = new.status
        self.owner = new.owner
        self.listed: str | None = None
        self.ready_at = new.ready_at
        self.epoch = 0
        self.base_seq = 1
        self.crashes = 0
        self.claimed_seq = 0
        self.stalled: str | None = None
        self.ended: JournalRow | None = None
        first = new.first
        self.last = first.seq
        self.journal = {first.seq: first}
        #: Made when the first message comes: most runs get none.
        self.mailbox: Sequence[Mail] = ()
        self.ids: Mapping[str, int] = _NONE
        if first.change is not None:
            self.change(first)

    # ------------------------------------------------------------------------------- journal

    def takes(self, row: JournalRow) -> bool:
        """Whether a row at a free number, with what rides on it, may go in."""
        if self.owner != row.writer or self.epoch != row.epoch:
            return False
        kind = type(row.change)
        return kind is not Reopen if self.status == "running" else kind in (Reopen, Finish)

    def append(self, row: JournalRow) -> None:
        """Write a row; what rides on it is for `change`."""
        self.journal[row.seq] = row
        self.last = max(self.last, row.seq)

    def payload(self, seq: int, n: int) -> bytes | None:
        """A large value of a row."""
        row = self.journal.get(seq)
        return row.payloads[n] if row is not None and 0 <= n < len(row.payloads) else None

    def change(self, row: JournalRow) -> None:
        """Carry out what rides on the row; the caller has checked that it may."""
        change = row.change
        if isinstance(change, Finish):
            self.owner, self.ready_at = None, NEVER
            self.status, self.ended = change.status, row
            if change.version is not None or change.hash is not None:
                self.version, self.hash = change.version or self.version, change.hash or self.hash
        elif isinstance(change, Continue):
            self._begin_at(row.seq, change)
        elif change is not None:
            self._let_go(row, change)

    def _let_go(self, row: JournalRow, change: Release | Stall | Reopen) -> None:
        self.owner = None
        if isinstance(change, Stall):
            self.ready_at, self.stalled = change.until, change.reason
            self.end_stall(change.seen, row.at)
        else:
            unread = len(self.mailbox) > row.read
            self.ready_at = min(change.ready_at, row.at) if unread else change.ready_at
            if isinstance(change, Reopen):
                self._reopen(change)

    def _begin_at(self, seq: int, change: Continue) -> None:
        self.base_seq, self.deadline = seq, change.deadline
        for old in [old for old in self.journal if old < seq]:
            del self.journal[old]

    def _reopen(self, change: Reopen) -> None:
        self.status = "running"
        self.version, self.hash, self.deadline = change.version, change.hash, change.deadline
        self.ended = None

    # ------------------------------------------------------------------------------- owners

    @property
    def read(self) -> int:
        """How much of the mail the last row has read."""
        return self.journal[self.last].read

    def in_a_row(self) -> int:
        """Crashes since the last row that was not a takeover."""
        return self.crashes if self.last == self.claimed_seq else 0

    def take_over(self, worker: str, now: int) -> None:
        """Free it from an owner that is dead, on behalf of `worker`."""
        self.owner = None
        self.epoch += 1
        if self.status != "running":
            return
        at = max(now, self.journal[self.last].at)
        seq, body = self.last + 1, takeover_body(worker, at)
        self.crashes = self.in_a_row() + 1
        self.journal[seq] = JournalRow(
            self.new.key, seq, at, worker, TAKEOVER_COMMIT, body, self.epoch, self.read
        )
        self.last = self.claimed_seq = seq
        self.ready_at = now

    def let_go(self, ready_at: int, stalled: str | None = None) -> None:
        """Without an owner, due then, or stalled; a finished run only loses its owner."""
        self.owner = None
        if self.status == "running":
            self.ready_at = ready_at
            self.stalled = stalled

    def stop_claims(self, reason: str, now: int) -> None:
        """Too many workers died of it: it is claimed no more, but once at its deadline."""
        late = self.deadline if self.deadline is not None and self.deadline > now else NEVER
        self.let_go(late, reason)

    def end_stall(self, seen: int, now: int) -> None:
        """A stall on which somebody acted before it was there, by a message after the `seen`
        ones, is none."""
        if self.stalled is not None and any(m.kind in ENDS_STALL for m in self.mailbox[seen:]):
            self.ready_at, self.stalled, self.crashes = now, None, 0

    def park(self, worker: str, park: Park) -> bool:
        """Let it go without a row, if nothing was missed."""
        if (
            self.owner != worker
            or self.epoch != park.epoch
            or self.status != "running"
            or not len(self.mailbox) == park.read == self.read
        ):
            return False
        self.let_go(park.ready_at)
        return True

    def post(self, message: Message, now: int) -> int:
        """Put a message into the mailbox; its number."""
        n = len(self.mailbox) + 1
        acts = self.stalled is not None and message.kind in ENDS_STALL
        name = ON_A_STALL if acts else message.name
        mail = Mail(n, message.id, message.kind, name, message.body)
        if isinstance(self.mailbox, list) and isinstance(self.ids, dict):
            self.mailbox.append(mail)
            self.ids[message.id] = n
        else:
            self.mailbox, self.ids = [mail], {message.id: n}
        if acts:
            self.stalled = None
            self.crashes = 0
        if self.owner is None and self.stalled is None:
            self.ready_at = min(self.ready_at, now)
        return n

    # ------------------------------------------------------------------------------- reading

    @property
    def finish(self) -> Finish | None:
        """How it ended; None while it goes on."""
        change = None if self.ended is None else self.ended.change
        return change if isinstance(change, Finish) else None

    @property
    def output_at(self) -> tuple[int, int] | None:
        """Where an output stands that is apart from its row."""
        row, finish = self.ended, self.finish
        if row is None or finish is None or finish.output_ref is None:
            return None
        return row.seq, finish.output_ref

    def rows(self, after: int = 0, limit: int | None = None) -> list[StoredRow]:
        """The first so many rows of the journal after this number, from its base on."""
        first = max(after + 1, self.base_seq)
        rows = (self.journal[seq] for seq in range(first, self.last + 1) if seq in self.journal)
        return [
            StoredRow(row.seq, row.at, row.writer, row.body, row.read)
            for row in islice(rows, limit)
        ]

    def shown(self) -> RunRow:
        """The run row."""
        new, finish = self.new, self.finish
        return RunRow(
            key=new.key,
            definition=new.definition,
            id=new.id,
            version=self.version,
            hash=self.hash,
            status=self.status,
            created=new.created,
            owner=self.owner,
            epoch=self.epoch,
            ready_at=self.ready_at,
            base_seq=self.base_seq,
            crashes=self.in_a_row(),
            finished=None if self.ended is None else self.ended.at,
            deadline=self.deadline,
            stalled=self.stalled,
            metadata=new.metadata,
            output=None if finish is None else finish.output,
            output_at=self.output_at,
            failure=None if finish is None else finish.failure,
            mail=len(self.mailbox),
            not_before=new.not_before,
        )
