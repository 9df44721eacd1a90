"""Inserting runs, each with its first journal row, in a lane of its own (rule 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perdure.model.status import TERMINAL
from perdure.stores.port import JournalRow, NewRun, Started
from perdure.stores.sqlite.driver import Connection, IntegrityError
from perdure.stores.sqlite.journal import (
    After,
    Parameters,
    keep_payloads,
    outcome,
)
from perdure.stores.sqlite.queries import MOST_ROWS, insert_many, query
from perdure.stores.sqlite.transaction import Transaction


def start_runs(db: Connection, runs: Sequence[NewRun], after: After) -> list[Started]:
    """Insert runs in one transaction; an answer per run, in order. `after`: see commit_rows."""
    try:
        if len(runs) <= MOST_ROWS and not any(_brings_more(new.first) for new in runs):
            insert_runs(db, runs)  # one statement is its own transaction
        else:
            with Transaction(db):
                insert_runs(db, runs)
                after([new.first for new in runs])
    except IntegrityError:
        with Transaction(db):
            return [_start_one(db, new, after) for new in runs]
    return [Started("created", new.key) for new in runs]


def insert_runs(db: Connection, runs: Sequence[NewRun]) -> None:
    """Insert runs that are not there, each with its first row."""
    values: Parameters = []
    for new in runs:
        first = new.first
        values += _run_values(new)
        values += (first.at, first.writer, first.commit, first.read, first.body)
    insert_many(db, "start", 24, values)
    keep_payloads(db, [new.first for new in runs])


def _brings_more(first: JournalRow) -> bool:
    """Whether there is more to do than to insert: a run that ends as it starts may be awaited."""
    return first.change is not None or bool(first.payloads or first.outgoing)


def _start_one(db: Connection, new: NewRun, after: After) -> Started:
    if db.execute(query("has_run"), (new.key,)).fetchone():
        return Started("mine", new.key)
    there = db.execute(query("run_of_id"), (new.definition, new.id)).fetchone()
    if there:
        return Started("exists", there[0])
    insert_runs(db, [new])
    after([new.first])
    return Started("created", new.key)


def _run_values(new: NewRun) -> tuple[Any, ...]:
    owner = new.owner
    if new.first.change is not None:
        owner = None
        status, ready_at, *rest = outcome(new.first)
    else:
        finished = new.first.at if new.status in TERMINAL else None
        status, ready_at, *rest = new.status, new.ready_at, None, finished, *(None,) * 5
    identity = (new.key, new.definition, new.id, new.version, new.hash)
    birth = (
        status, new.created, owner, ready_at, new.deadline, new.metadata, new.not_before
    )  # fmt: skip
    return (*identity, *birth, *rest)
