"""Reading runs: rows of the database as the port's records."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from perdure.model.errors import NotFound, PayloadMissing, StoreError
from perdure.stores.answers import LoadedRun, Mail, RunRow, StoredRow
from perdure.stores.paging import born
from perdure.stores.port import RunQuery
from perdure.stores.rows import NEVER, StoredDefinition
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import query

_STATUSES: Final = ("running", "completed", "failed", "canceled")
_LAST_KEY: Final = b"\xff" * 17
#: What parts the bodies of rows in the answer of `load`.
_BETWEEN: Final = b"\x1e"
_heads = msgspec.json.Decoder(list[tuple[int, int, str, int]]).decode
_letters = msgspec.json.Decoder(list[tuple[int, str, str, str, str | None]]).decode


def load_run(db: Connection, key: bytes) -> LoadedRun:
    """A run and its journal, seen at one moment."""
    found = db.execute(query("load"), {"key": key}).fetchone()
    if found is None:
        raise NotFound(f"no run with the key {key.hex()}")
    *columns, heads, bodies, unread = found
    try:
        journal = [
            StoredRow(seq, at, writer, body, read)
            for (seq, at, writer, read), body in zip(
                _heads(heads), [] if bodies is None else bodies.split(_BETWEEN), strict=True
            )
        ]
        letters = [] if unread is None else _letters(unread)
    except ValueError as error:  # what the decoders raise are such, too
        raise StoreError(f"the journal of run {key.hex()} is damaged: {error}") from error
    journal.sort(key=_by_seq)
    mail = [
        Mail(n, id, kind, name, None if body is None else body.encode())
        for n, id, kind, name, body in sorted(letters, key=lambda letter: letter[0])
    ]
    return LoadedRun(run_of_row(tuple(columns)), journal, mail)


def read_payloads(db: Connection, key: bytes, refs: Sequence[tuple[int, int]]) -> list[bytes]:
    """Large values, in the order asked for."""
    found: list[bytes] = []
    for seq, n in refs:
        row = db.execute(query("payload"), {"key": key, "seq": seq, "n": n}).fetchone()
        if row is None:
            raise PayloadMissing(
                f"run {key.hex()} lacks the payload {n} of its row {seq}: restore it from a backup"
            )
        found.append(row[0])
    return found


def describe_run(db: Connection, definition: str, id: str) -> RunRow:
    """One run by its id."""
    found = db.execute(query("describe"), (definition, id)).fetchone()
    if found is None:
        raise NotFound(f"no run {id!r} of {definition}")
    return run_of_row(found)


def read_definition(db: Connection, hash: str) -> StoredDefinition:
    """A definition by its hash."""
    found = db.execute(query("definition"), (hash,)).fetchone()
    if found is None:
        raise NotFound(f"no definition with the hash {hash}")
    return StoredDefinition(*found)


def read_latest_definition(db: Connection, name: str) -> StoredDefinition:
    """The definition of a name that was published last."""
    found = db.execute(query("latest_definition"), (name,)).fetchone()
    if found is None:
        raise NotFound(
            f"no definition with the name {name} is known here: publish the document, or let a "
            "worker that has the code open the store once"
        )
    return StoredDefinition(*found)


def read_latest_definitions(db: Connection, kind: str) -> list[StoredDefinition]:
    """Of each name the definition that was published last, where it is of this kind."""
    return [StoredDefinition(*row) for row in db.execute(query("latest_definitions"), (kind,))]


def find_runs(db: Connection, asked: RunQuery) -> list[RunRow]:
    """A page of runs, newest first. Each statement walks one index and stops at the limit."""
    if asked.limit <= 0:
        return []
    until, before = NEVER, _LAST_KEY
    if asked.before is not None:
        last = db.execute(query("created"), (asked.before,)).fetchone()
        until, before = (last[0] if last else born(asked.before)), asked.before
    after = -NEVER if asked.created_after is None else asked.created_after
    place = {"after": after, "until": until, "before": before, "limit": asked.limit}
    statuses = asked.status or _STATUSES
    if asked.definition is not None:
        chosen = {
            "definition": asked.definition,
            "statuses": msgspec.json.encode(statuses).decode(),
        }
        found = db.execute(query("find_by_definition"), place | chosen).fetchall()
        return [run_of_row(row) for row in found]
    runs: list[RunRow] = []
    for status in dict.fromkeys(statuses):
        rows = db.execute(query("find_by_status"), place | {"status": status}).fetchall()
        runs += [run_of_row(row) for row in rows]
    runs.sort(key=lambda run: (run.created, run.key), reverse=True)
    return runs[: asked.limit]


_by_seq = attrgetter("seq")


def run_of_row(row: tuple[Any, ...]) -> RunRow:
    """A run from the columns of `run_columns`."""
    output_seq, output_n, *rest = row[-5:]
    place = None if output_seq is None else (output_seq, output_n)
    # The checker counts each star as one.
    return RunRow(*row[:-5], place, *rest)  # type: ignore[call-arg]
