"""Appending to journals: the hot path, and the fence (rules 1 and 2).

A batch first goes in with one statement for many rows, which fails as a whole if any seq is
taken or any change may not be made. Only then is it done again row by row, to find out which:
collisions are rare, and the plain way costs a third less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from perdure.stores.port import (
    NEVER,
    Continue,
    Finish,
    JournalRow,
    Release,
    Reopen,
    Stall,
    Verdict,
)
from perdure.stores.sqlite.driver import Connection, IntegrityError
from perdure.stores.sqlite.queries import MOST_ROWS, query, query_for, rows_at_once
from perdure.stores.sqlite.transaction import Transaction

Parameters: TypeAlias = list[Any]
After: TypeAlias = Callable[[Sequence[JournalRow]], None]

#: What `outcome` gives.
_OUTCOME: Final = (
    "status", "ready_at", "stalled", "finished", "output", "output_seq", "output_n", "failure",
    "purge_at",
)  # fmt: skip


class _Refused(Exception):
    """Some row of the batch cannot go in as it is."""


def commit_rows(db: Connection, rows: Sequence[JournalRow], after: After) -> list[Verdict]:
    """Append rows with what rides on them, in one transaction; a verdict per row, in order.
    `after` carries out what accepted rows carry besides, before the transaction ends."""
    try:
        for row in rows:
            if row.change is not None or row.payloads or row.outgoing:
                break
        else:
            if len(rows) <= MOST_ROWS:
                # One statement is its own transaction.
                return _verdicts_of_one_statement(db, rows)
        with Transaction(db):
            _append_all(db, rows)
            after(rows)
    except (IntegrityError, _Refused):
        with Transaction(db):
            return [_append_alone(db, row, after) for row in rows]
    return ["accepted"] * len(rows)


def insert_many(db: Connection, name: str, width: int, values: Parameters) -> int:
    """Execute a query for any number of rows of `width` values; how many rows it changed."""
    rows, done, changed = len(values) // width, 0, 0
    while done < rows:
        some = rows_at_once(rows - done)
        part = values[done * width : (done + some) * width]
        changed += db.execute(query_for(name, some), part).rowcount
        done += some
    return changed


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


def outcome(row: JournalRow) -> tuple[Any, ...]:
    """What a row's change makes of its run: status, ready_at, stalled, finished, output,
    output_seq, output_n, failure, purge_at."""
    change = row.change
    assert change is not None and not isinstance(change, Continue)  # noqa: PT018
    if isinstance(change, Finish):
        seq = None if change.output_ref is None else row.seq
        result = (change.output, seq, change.output_ref, change.failure, change.purge_at)
        return (change.status, NEVER, None, row.at, *result)
    nothing = (None,) * 6
    if isinstance(change, Stall):
        return ("running", change.until, change.reason, *nothing)
    return ("running", change.ready_at, None, *nothing)


def _let_go_values(row: JournalRow) -> Parameters:
    """Who lets go, of what, what becomes of it, and when it is due if mail was missed."""
    made = outcome(row)
    urgent_at = min(row.change.ready_at, row.at) if isinstance(row.change, Release) else made[1]
    return [row.run, row.writer, row.epoch, *made, urgent_at, row.read]


def _verdicts_of_one_statement(db: Connection, rows: Sequence[JournalRow]) -> list[Verdict]:
    if not rows:
        return []
    added = db.execute(query_for("append", len(rows)), journal_values(rows)).rowcount
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
    if insert_many(db, "append", 7, journal_values(rows)) != len(rows):
        raise _Refused
    keep_payloads(db, rows)
    if not all(_go_on_as_new(db, row) for row in rows if isinstance(row.change, Continue)):
        raise _Refused
    changing = [row for row in rows if row.change is not None and type(row.change) is not Continue]
    values: Parameters = []
    for row in changing:
        values += _let_go_values(row)
    if insert_many(db, "let_go", 14, values) != len(changing):
        raise _Refused
    _end_stalls(db, changing)


def _append_alone(db: Connection, row: JournalRow, after: After) -> Verdict:
    verdict = _append_one(db, row)
    if verdict == "accepted":
        after([row])
    return verdict


def _append_one(db: Connection, row: JournalRow) -> Verdict:
    if isinstance(row.change, Reopen):
        return _append_to_finished(db, row)
    if db.execute(query_for("append_if_free", 1), journal_values([row])).rowcount != 1:
        if isinstance(row.change, Finish):
            return _append_to_finished(db, row)
        mine = _author(db, row) == (row.writer, row.commit)
        return "mine" if mine else "refused"
    if row.change is not None and not _changed(db, row):
        db.execute(query("take_back"), (row.run, row.seq))
        return "refused"
    keep_payloads(db, [row])
    return "accepted"


def _changed(db: Connection, row: JournalRow) -> bool:
    return _go_on_as_new(db, row) if isinstance(row.change, Continue) else _let_go(db, row)


def _go_on_as_new(db: Connection, row: JournalRow) -> bool:
    assert isinstance(row.change, Continue)
    place = {"key": row.run, "owner": row.writer, "epoch": row.epoch, "seq": row.seq}
    said = db.execute(query("continue_run"), {**place, "deadline": row.change.deadline})
    return said.rowcount == 1


def _let_go(db: Connection, row: JournalRow) -> bool:
    if db.execute(query_for("let_go", 1), _let_go_values(row)).rowcount != 1:
        return False
    _end_stalls(db, [row])
    return True


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
        name, said = "finish_again", dict(zip(_OUTCOME, outcome(row), strict=True))
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
