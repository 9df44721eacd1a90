"""Inserting runs, each with its first journal row, in a lane of its own (rule 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.stores.answers import Started
from perdure.stores.rows import NewRun
from perdure.stores.sqlite.driver import Connection, IntegrityError, is_refusal
from perdure.stores.sqlite.journal import (
    After,
    Parameters,
    became,
    ended,
    keep_payloads,
)
from perdure.stores.sqlite.queries import MOST_ROWS, insert_many, query
from perdure.stores.sqlite.transaction import Transaction

#: What a run that ends as it starts says besides.
_SAID: Final = (
    "stalled", "finished", "output", "output_seq", "output_n", "failure", "purge_at"
)  # fmt: skip


def start_runs(db: Connection, runs: Sequence[NewRun], after: After) -> list[Started]:
    """Insert runs in one transaction; an answer per run, in order. `after`: see commit_rows."""
    if not any(new.former for new in runs):
        try:
            if len(runs) <= MOST_ROWS and not any(map(_brings_more, runs)):
                _insert(db, runs)  # one statement is its own transaction
            else:
                with Transaction(db):
                    insert_runs(db, runs)
                    after([new.first for new in runs])
        except IntegrityError as error:
            if not is_refusal(error):
                raise
            # some are there: one by one
        else:
            return [Started("created", new.key) for new in runs]
    with Transaction(db):
        return [_start_one(db, new, after) for new in runs]


def insert_runs(db: Connection, runs: Sequence[NewRun]) -> None:
    """Insert runs that are not there, each with its first row."""
    _insert(db, runs)
    keep_payloads(db, [new.first for new in runs])
    for new in runs:
        if new.first.change is not None or new.status != "running":
            _end_at_birth(db, new)


def _insert(db: Connection, runs: Sequence[NewRun]) -> None:
    """The runs and their rows, without what these bring besides."""
    values: Parameters = []
    for new in runs:
        values += _run_values(new)
    insert_many(db, "start", 17, values)


def _brings_more(new: NewRun) -> bool:
    """Whether there is more to do than to insert: a run that ends as it starts may be awaited."""
    first = new.first
    if first.change is not None or new.status != "running":
        return True
    return bool(first.payloads or first.outgoing)


def _start_one(db: Connection, new: NewRun, after: After) -> Started:
    if db.execute(query("has_run"), (new.key,)).fetchone():
        return Started("mine", new.key)
    for name in (new.definition, *new.former):
        there = db.execute(query("run_of_id"), (name, new.id)).fetchone()
        if there:
            return Started("exists", there[0])
    insert_runs(db, [new])
    after([new.first])
    return Started("created", new.key)


def _run_values(new: NewRun) -> Parameters:
    owner, status, ready_at, first = new.owner, new.status, new.ready_at, new.first
    if first.change is not None:
        owner = None
        status, ready_at, *_ = became(first.change)
    return [
        new.key, new.definition, new.id, new.version, new.hash, status, new.created, owner,
        ready_at, new.deadline, new.metadata, new.not_before, first.at, first.writer, first.commit,
        first.read, first.body,
    ]  # fmt: skip


def _end_at_birth(db: Connection, new: NewRun) -> None:
    first = new.first
    if first.change is not None:
        said = ended(first)
    else:
        said = dict.fromkeys(_SAID) | {"finished": first.at}
    db.execute(query("end_at_birth"), {name: said[name] for name in _SAID} | {"key": new.key})
