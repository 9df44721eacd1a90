"""A run taken out of the database whole, as of one moment, and put into another, all or nothing."""

from __future__ import annotations

import msgspec

from perdure.model.errors import NotFound
from perdure.stores.answers import RunRow, Started, StoredRow
from perdure.stores.moving import SavedPayload, SavedRow, SavedRun
from perdure.stores.rows import NEVER, StoredDefinition
from perdure.stores.sqlite.children import Sent, tell_waiters
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.mailbox import read_mail
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.reads import run_of_row
from perdure.stores.sqlite.transaction import Transaction


def read_rows(db: Connection, key: bytes, after: int, limit: int) -> list[StoredRow]:
    """So many rows of the journal from a number on."""
    values = {"key": key, "after": after, "limit": limit}
    return [StoredRow(*row) for row in db.execute(query("rows_after"), values).fetchall()]


def save(db: Connection, key: bytes) -> SavedRun:
    """Everything of the run. Raises NotFound."""
    whole = {"key": key}
    with Transaction(db, write=False):
        found = db.execute(query("run_of_key"), (key,)).fetchone()
        if found is None:
            raise NotFound(f"no run with the key {key.hex()}")
        run = run_of_row(found)
        known = db.execute(query("definition"), (run.hash,)).fetchone()
        return SavedRun(
            run,
            [SavedRow(*row) for row in db.execute(query("save_journal"), whole).fetchall()],
            [SavedPayload(*row) for row in db.execute(query("save_payloads"), whole).fetchall()],
            read_mail(db, key, 0),
            None if known is None else StoredDefinition(*known),
        )


def restore(db: Connection, saved: SavedRun, purge_at: int | None, now: int, sent: Sent) -> Started:
    """Insert the run in one transaction, unless it is there. Whoever waits for it is told how it
    ended, if it has."""
    sent.clear()
    row = saved.run
    with Transaction(db):
        if db.execute(query("has_run"), (row.key,)).fetchone():
            return Started("mine", row.key)
        there = db.execute(query("run_of_id"), (row.definition, row.id)).fetchone()
        if there:
            return Started("exists", there[0])
        _insert(db, saved, purge_at)
        if row.status != "running":
            tell_waiters(db, [row.key], now, sent)
        return Started("created", row.key)


def _insert(db: Connection, saved: SavedRun, purge_at: int | None) -> None:
    row, key = saved.run, saved.run.key
    last = saved.journal[-1].seq if row.crashes else 0
    db.execute(query("restore_run"), (*_values(row, len(saved.mail), last), purge_at))
    journal = [(key, r.seq, r.at, r.writer, r.commit, r.read, r.body) for r in saved.journal]
    db.executemany(query("append_first"), journal)
    db.executemany(query("keep_payloads"), [(key, p.seq, p.n, p.value) for p in saved.payloads])
    letters = [(key, m.n, m.id, m.kind, m.name, m.body) for m in saved.mail]
    db.executemany(query("keep_letter"), letters)
    if (d := saved.definition) is not None:
        db.execute(query("make_known"), msgspec.structs.asdict(d))


def _values(row: RunRow, mail: int, claimed_seq: int) -> tuple[object, ...]:
    seq, n = row.output_at or (None, None)
    identity = (row.key, row.definition, row.id, row.version, row.hash, row.status, row.created)
    place = (row.epoch, NEVER, mail, row.base_seq, row.crashes, claimed_seq, row.deadline)
    told = (row.metadata, row.stalled, row.finished, row.output, seq, n, row.failure)
    return (*identity, *place, *told, row.not_before)
