"""A run taken out of memory whole, and put into another memory."""

from __future__ import annotations

from perdure.stores.answers import RunRow, Started
from perdure.stores.memory.run import MemoryRun
from perdure.stores.memory.versions import make_known
from perdure.stores.moving import SavedPayload, SavedRow, SavedRun
from perdure.stores.rows import NEVER, Finish, JournalRow, NewRun, StoredDefinition


def save(run: MemoryRun, definition: StoredDefinition | None) -> SavedRun:
    """Everything of the run."""
    rows = [row for _, row in sorted(run.journal.items())]
    journal = [SavedRow(r.seq, r.at, r.writer, r.commit, r.read, r.body) for r in rows]
    payloads = [
        SavedPayload(row.seq, n, value) for row in rows for n, value in enumerate(row.payloads)
    ]
    return SavedRun(run.shown(), journal, payloads, list(run.mailbox), definition)


def restore(
    runs: dict[bytes, MemoryRun],
    ids: dict[tuple[str, str], bytes],
    known: dict[str, StoredDefinition],
    saved: SavedRun,
    purge_at: int | None,
) -> Started:
    """Put the run there, unless it is."""
    row = saved.run
    if row.key in runs:
        return Started("mine", row.key)
    key = ids.setdefault((row.definition, row.id), row.key)
    if key != row.key:
        return Started("exists", key)
    runs[key] = _made(saved, purge_at)
    if saved.definition is not None:
        make_known(known, saved.definition)
    return Started("created", key)


def _made(saved: SavedRun, purge_at: int | None) -> MemoryRun:
    row = saved.run
    apart: dict[int, list[bytes]] = {}
    for payload in sorted(saved.payloads, key=lambda one: (one.seq, one.n)):
        apart.setdefault(payload.seq, []).append(payload.value)
    first, *others = [
        JournalRow(
            row.key, one.seq, one.at, one.writer, one.commit, one.body, 0, one.read,
            tuple(apart.get(one.seq, ())),
        )
        for one in saved.journal
    ]  # fmt: skip
    made = MemoryRun(
        NewRun(
            row.key, row.definition, row.id, row.version, row.hash, row.created, first,
            None, row.not_before or NEVER, row.deadline, row.metadata,
        )
    )  # fmt: skip
    for one in others:
        made.append(one)
    made.mailbox = list(saved.mail)
    made.ids = {mail.id: mail.n for mail in saved.mail}
    made.last = saved.journal[-1].seq
    made.claimed_seq = made.last if row.crashes else 0
    made.ready_at = NEVER
    for name in ("status", "epoch", "base_seq", "crashes", "stalled"):
        setattr(made, name, getattr(row, name))
    if row.finished is not None:
        made.ended = _ended(row, row.finished, purge_at)
    return made


def _ended(row: RunRow, at: int, purge_at: int | None) -> JournalRow:
    """What is left to say of the row in which the run ended, as of one that is written."""
    seq, n = row.output_at or (0, None)
    keep = NEVER if purge_at is None else purge_at
    finish = Finish(row.status, keep, row.output, n, row.failure)
    return JournalRow(row.key, seq, at, "", 0, b"", change=finish)
