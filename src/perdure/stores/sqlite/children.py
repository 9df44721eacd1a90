"""Runs that wait for other runs: who waits for whom, and what they are told, in the transaction of
the row that it rides on (rules 5 and 6: this store has one writer, so nothing is left to deliver).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from perdure.stores.answers import Posted
from perdure.stores.children import (
    Asked,
    cancel_message,
    due_by,
    finished_id,
    finished_message,
    refused_message,
    started_id,
    started_message,
    was_created,
)
from perdure.stores.rows import ChildCancel, ChildStart, Finish, JournalRow, Message
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.mailbox import post_one
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.starts import insert_runs

#: What was posted, with the answers.
Sent = list[tuple[Message, Posted]]
Name = tuple[str, str]


def carry_out(db: Connection, rows: Sequence[JournalRow], now: int, sent: Sent) -> None:
    """What rows that were just accepted carry; and whoever waits for the runs that they end is told
    so."""
    for row in rows:
        for out in row.outgoing:
            if isinstance(out, ChildStart):
                _ask(db, row.run, out, now, sent)
            elif isinstance(out, ChildCancel):
                _cancel(db, out, now, sent)
            else:
                _send(db, out, now, sent)
    ended = [row.run for row in rows if isinstance(row.change, Finish)]
    if ended:
        tell_waiters(db, ended, now, sent)


def tell_waiters(db: Connection, ended: Sequence[bytes], now: int, sent: Sent) -> None:
    """These runs have ended: whoever waits for one is told."""
    (anybody,) = db.execute(query("anybody_waits")).fetchone()
    if not anybody:
        return
    for key in ended:
        name = _name(db, key)
        assert name is not None
        waiting = db.execute(query("waiters"), name).fetchall()
        if waiting:
            db.execute(query("forget_waiters"), name)
            end = _end(db, name)
            for parent, task, node, created in waiting:
                _tell(db, Asked(parent, task, node, bool(created)), end, now, sent)


def _send(db: Connection, message: Message, now: int, sent: Sent) -> None:
    posted = post_one(db, message, now)
    if posted.outcome == "posted":
        sent.append((message, posted))


def _ask(db: Connection, parent: bytes, start: ChildStart, now: int, sent: Sent) -> None:
    asker = _name(db, parent)
    assert asker is not None
    name = start.name
    if start.former:
        name = next((n for n in start.names if _end(db, n) is not None), name)
    (asked_before,) = db.execute(
        query("asked"), (parent, finished_id(start.task), start.task)
    ).fetchone()
    if asked_before:
        return
    told = db.execute(query("told"), (parent, started_id(start.task))).fetchone()
    if told is None:
        created = _end(db, name) is None
        if created and start.run is None:
            _send(db, refused_message(asker, start), now, sent)
            return
        if created:
            _make(db, start, now, sent)
        _send(db, started_message(asker, start, created), now, sent)
    else:
        created = was_created(told[0])
    if not start.waits:
        return
    asked = Asked(parent, start.task, start.node, created)
    end = _end(db, name)
    if end is not None and end[1] != "running":
        _tell(db, asked, end, now, sent)
    else:
        db.execute(query("keep_waiter"), (*name, parent, start.task, start.node, int(created)))


def _make(db: Connection, start: ChildStart, now: int, sent: Sent) -> None:
    """The run that is asked for is not there."""
    d, new = start.definition, start.run
    assert d is not None and new is not None  # noqa: PT018
    db.execute(query("define_child"), msgspec.structs.astuple(d))
    insert_runs(db, [due_by(new, now)])
    carry_out(db, [new.first], now, sent)


def _cancel(db: Connection, cancel: ChildCancel, now: int, sent: Sent) -> None:
    for definition, id, created in db.execute(query("leave_waiter"), (cancel.task,)).fetchall():
        if created:
            _send(db, cancel_message((definition, id), cancel.task, cancel.reason), now, sent)


def _tell(db: Connection, asked: Asked, end: Any, now: int, sent: Sent) -> None:
    asker = _name(db, asked.parent)
    if asker is None:
        return
    key, status, output, seq, n, failure = end
    if seq is not None:
        found = db.execute(query("payload"), {"key": key, "seq": seq, "n": n}).fetchone()
        output = None if found is None else found[0]
    _send(
        db, finished_message(asker, asked.task, asked.node, status, output, failure), now, sent
    )  # fmt: skip


def _name(db: Connection, key: bytes) -> Name | None:
    found = db.execute(query("name_of_run"), (key,)).fetchone()
    return None if found is None else (found[0], found[1])


def _end(db: Connection, name: Name) -> Any:
    """Key, status, output (or seq and n of where it stands) and failure of a run; None: no run."""
    return db.execute(query("ended"), name).fetchone()
