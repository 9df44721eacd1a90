"""Claims: whose turn a run is, and what may not be claimed any more (rules 9, 11, 16).

Runs are taken in batches, earliest first. One whose workers keep dying is taken alone, so that
the next death is surely its own, and past the limit not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.model.errors import NotFound, RunActive, StoreError
from perdure.stores.answers import Claim
from perdure.stores.port import CRASH_LIMIT, GIVEN_BACK_FOR, LONE_CRASHES
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import query, query_for
from perdure.stores.sqlite.transaction import Transaction
from perdure.stores.takeover import crash_reason

_AT_ONCE: Final = 100


def claim_due(
    db: Connection, worker: str, definitions: Sequence[str], limit: int, now: int
) -> list[Claim]:
    """Take due runs, earliest first. It takes the lock: look first whether there is any."""
    names = list(dict.fromkeys(definitions))
    with Transaction(db):
        crashes = _next_batch(db, names, limit, now)
        keys, claimed = list(crashes), []
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            claimed += db.execute(query_for("claim", len(part)), (worker, *part)).fetchall()
    claimed.sort(key=lambda row: (row[5], row[0]))
    return [
        Claim(key, definition, hash, epoch, crashes[key], mail)
        for key, definition, hash, epoch, mail, _ in claimed
    ]


def _next_batch(db: Connection, names: Sequence[str], limit: int, now: int) -> dict[bytes, int]:
    """The keys to claim now, each with its crashes in a row."""
    while True:
        due = [
            found
            for name in names
            for which in ("due", "due_stalled")
            for found in db.execute(query(which), (name, now, limit)).fetchall()
        ]
        batch: dict[bytes, int] = {}
        for _, key, crashes, stalled in sorted(due)[:limit]:
            if crashes > CRASH_LIMIT and not stalled:
                why = {"reason": crash_reason(crashes), "key": key, "now": now}
                db.execute(query("stall"), why)
                break  # and look again: another may be due in its place
            if crashes >= LONE_CRASHES:
                return batch or {key: crashes}
            batch[key] = crashes
        else:
            return batch


def claim_finished(db: Connection, worker: str, definition: str, id: str) -> Claim:
    """Own a finished run for a retry."""
    with Transaction(db):
        found = db.execute(query("addressee"), (definition, id)).fetchone()
        if found is None:
            raise NotFound(f"no run {id!r} of {definition}")
        key, status, owner, _ = found
        if status == "running":
            raise RunActive(f"run {id!r} of {definition} has not ended: cancel it first")
        if owner is not None:
            raise StoreError(f"run {id!r} of {definition} is being retried by somebody else")
        [row] = db.execute(query_for("claim", 1), (worker, key)).fetchall()
    key, name, hash, epoch, mail, _ = row
    return Claim(key, name, hash, epoch, mail=mail)


def give_back(
    db: Connection, worker: str, claim: Claim, stalled: str | None, until: int, now: int
) -> None:
    """Undo a claim, for a while or until somebody acts; who acted since it was made did so."""
    ready_at = until if stalled is not None else now + GIVEN_BACK_FOR
    held = {"key": claim.key, "owner": worker, "epoch": claim.epoch}
    with Transaction(db):
        done = db.execute(query("give_back"), {**held, "ready_at": ready_at, "stalled": stalled})
        if stalled is not None and done.rowcount == 1:
            db.execute(query("end_stall"), {"key": claim.key, "seen": claim.mail, "at": now})


def unstall(db: Connection, definitions: Sequence[str], now: int) -> int:
    """Make the stalled runs of these definitions due, but for those that kill; how many."""
    count = 0
    with Transaction(db):
        for name in dict.fromkeys(definitions):
            found = {"definition": name, "now": now, "most": CRASH_LIMIT}
            count += db.execute(query("unstall"), found).rowcount
    return count
