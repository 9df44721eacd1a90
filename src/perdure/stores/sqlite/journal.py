"""Appending to journals: the hot path, and the fence (rules 1 and 2).

A batch first goes in with one statement for many rows, which fails as a whole if any seq is
taken, any change may not be made, or somebody is to be told of an end. Only then is it done again
by a transaction, and if that fails, row by row, to find out which: collisions are rare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from perdure.stores.answers import Verdict
from perdure.stores.rows import (
    NEVER,
    Continue,
    Finish,
    JournalRow,
    Release,
    Reopen,
    RunChange,
    Stall,
)
from perdure.stores.sqlite.driver import Connection, IntegrityError, is_refusal
from perdure.stores.sqlite.queries import MOST_ROWS, insert_many, query, query_for
from perdure.stores.sqlite.transaction import Transaction

Parameters: TypeAlias = list[Any]
After: TypeAlias = Callable[[Sequence[JournalRow]], None]

#: Changes that need no more than the row of their run. A stall is looked at after it.
_LETS_GO: Final = frozenset({Finish, Release})
#: What becomes of a run whose row changes nothing of it.
_NOTHING: Final = (None,) * 7


class _Refused(Exception):
    """Some row of the batch cannot go in as it is."""


def commit_rows(db: Connection, rows: Sequence[JournalRow], after: After) -> list[Verdict]:
    """Append rows with what rides on them, in one transaction; a verdict per row, in order.
    `after` carries out what accepted rows carry besides, before the transaction ends."""
    try:
        if (verdicts := _in_one_statement(db, rows)) is not None:
            return verdicts
    except IntegrityError as error:
        if not is_refusal(error):
            raise
    try:
        with Transaction(db):
            _append_all(db, rows)
            after(rows)
    except (IntegrityError, _Refused) as error:
        if isinstance(error, IntegrityError) and not is_refusal(error):
            raise
        with Transaction(db):
            return [_append_alone(db, row, after) for row in rows]
    return ["accepted"] * len(rows)


def _in_one_statement(db: Connection, rows: Sequence[JournalRow]) -> list[Verdict] | None:
    """What became of rows that need no more than one; None for others."""
    if len(rows) > MOST_ROWS:
        return None
    changes = False
    for row in rows:
        if row.change is not None:
            if type(row.change) not in _LETS_GO:
                return None
            changes = True
        if row.payloads or row.outgoing:
            return None
    if changes:
        _arrive(db, rows, alone=True)
        return ["accepted"] * len(rows)
    return _verdicts_of_one_statement(db, rows)


def _arrive(db: Connection, rows: Sequence[JournalRow], *, alone: bool) -> None:
    """Append rows, with what becomes of their runs. Raises IntegrityError, with nothing done,
    when any of them is refused or cannot be written, or when a run ends that is waited for and the
    statement is `alone`."""
    values: Parameters = []
    for row in rows:
        values += (row.run, row.seq, row.at, row.writer, row.commit, row.read, row.body)
        values += (alone, row.epoch)
        values += _NOTHING if row.change is None else became(row.change)
    insert_many(db, "commit", 16, values)


def journal_values(rows: Sequence[JournalRow]) -> Parameters:
    """The columns of journal rows, one row after another."""
    values: Parameters = []
    for row in rows:
        values += (row.run, row.seq, row.at, row.writer, row.commit, row.read, row.body)
    return values


def keep_payloads(db: Connection, rows: Sequence[JournalRow]) -> None:
    """Store the large values of rows just appended."""
    values: Parameters = []
    for row in rows:
        for n, value in enumerate(row.payloads):
            values += (row.run, row.seq, n, value)
    insert_many(db, "keep_payloads", 4, values)


def became(change: RunChange) -> tuple[Any, ...]:
    """What a change makes of its run: status, ready_at, stalled, output, output_n, failure,
    purge_at."""
    if isinstance(change, Finish):
        return (
            change.status, NEVER, None, change.output, change.output_ref, change.failure,
            change.purge_at,
        )  # fmt: skip
    if isinstance(change, Release):
        return ("running", change.ready_at, None, None, None, None, None)
    if isinstance(change, Stall):
        return ("running", change.until, change.reason, None, None, None, None)
    return _NOTHING  # the others go by their own ways


def ended(row: JournalRow) -> dict[str, Any]:
    """The same of a row's change, with where its output stands and when the run ended."""
    assert row.change is not None
    status, ready_at, stalled, output, n, failure, purge_at = became(row.change)
    return {
        "status": status,
        "ready_at": ready_at,
        "stalled": stalled,
        "finished": None if status == "running" else row.at,
        "output": output,
        "output_seq": None if n is None else row.seq,
        "output_n": n,
        "failure": failure,
        "purge_at": purge_at,
    }


def _verdicts_of_one_statement(db: Connection, rows: Sequence[JournalRow]) -> list[Verdict]:
    if not rows:
        return []
    added = insert_many(db, "append", 7, journal_values(rows))
    if added == len(rows):
        return ["accepted"] * added
    return [_verdict_after(db, row) for row in rows]


def _verdict_after(db: Connection, row: JournalRow) -> Verdict:
    """What became of a row in a statement that left some out. It looks at the run before the
    seq: where the run has ended, a seq that is taken makes nothing fail, whoever took it."""
    if _author(db, row) != (row.writer, row.commit):
        return "refused"
    return "accepted" if db.execute(query("is_running"), (row.run,)).fetchone() else "mine"


def _append_all(db: Connection, rows: Sequence[JournalRow]) -> None:
    """All or nothing. Raises _Refused or IntegrityError."""
    if any(isinstance(row.change, Reopen) for row in rows):
        raise _Refused  # it goes by its own way, row by row
    _arrive(db, rows, alone=False)
    keep_payloads(db, rows)
    if not all(_go_on_as_new(db, row) for row in rows if isinstance(row.change, Continue)):
        raise _Refused
    _end_stalls(db, rows)


def _append_alone(db: Connection, row: JournalRow, after: After) -> Verdict:
    verdict = _append_one(db, row)
    if verdict == "accepted":
        after([row])
    return verdict


def _append_one(db: Connection, row: JournalRow) -> Verdict:
    if isinstance(row.change, Reopen):
        return _append_to_finished(db, row)
    try:
        _arrive(db, [row], alone=False)
    except IntegrityError as error:
        if not is_refusal(error):
            raise
        if isinstance(row.change, Finish):
            return _append_to_finished(db, row)
        mine = _author(db, row) == (row.writer, row.commit)
        return "mine" if mine else "refused"
    if isinstance(row.change, Continue) and not _go_on_as_new(db, row):
        db.execute(query("take_back"), (row.run, row.seq))
        return "refused"
    _end_stalls(db, [row])
    keep_payloads(db, [row])
    return "accepted"


def _go_on_as_new(db: Connection, row: JournalRow) -> bool:
    assert isinstance(row.change, Continue)
    place = {"key": row.run, "owner": row.writer, "epoch": row.epoch, "seq": row.seq}
    said = db.execute(query("continue_run"), {**place, "deadline": row.change.deadline})
    return said.rowcount == 1


def _end_stalls(db: Connection, rows: Sequence[JournalRow]) -> None:
    """A stall that somebody acted on before it was there is none."""
    for row in rows:
        if isinstance(row.change, Stall) and row.change.seen != NEVER:
            db.execute(query("end_stall"), {"key": row.run, "seen": row.change.seen, "at": row.at})


def _append_to_finished(db: Connection, row: JournalRow) -> Verdict:
    """A retry: the only row that a finished run takes, from the short owner that claimed it."""
    author = _author(db, row)
    if author is not None:
        return "mine" if author == (row.writer, row.commit) else "refused"
    values = {"key": row.run, "owner": row.writer, "epoch": row.epoch}
    if isinstance(row.change, Reopen):
        name, said = "reopen", _reopened(row, row.change)
    else:
        assert isinstance(row.change, Finish)
        name, said = "finish_again", ended(row)
        said |= {"version": row.change.version, "hash": row.change.hash}
    if db.execute(query(name), values | said).rowcount != 1:
        return "refused"
    db.execute(query_for("append_first", 1), journal_values([row]))
    keep_payloads(db, [row])
    return "accepted"


def _reopened(row: JournalRow, change: Reopen) -> dict[str, Any]:
    return {
        "version": change.version,
        "hash": change.hash,
        "deadline": change.deadline,
        "ready_at": change.ready_at,
        "at": row.at,
        "read": row.read,
    }


def _author(db: Connection, row: JournalRow) -> tuple[str, int] | None:
    place = {"key": row.run, "seq": row.seq}
    found: tuple[str, int] | None = db.execute(query("author"), place).fetchone()
    return found
