"""Workers: who is alive, what the dead held, and whose turn a run is (rules 2, 8, 9).

Whether a worker lives is asked of the operating system's locks, never of a clock. A dead one's
runs are freed by appending to each journal first: that row is the fence, whoever thinks to own
the run finds its next seq taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from perdure.model.errors import StoreError
from perdure.stores.port import GIVEN_BACK_FOR, NEVER, Claim, WorkerInfo
from perdure.stores.sqlite.driver import Connection, IntegrityError
from perdure.stores.sqlite.locks import WorkerLocks
from perdure.stores.sqlite.queries import query, query_for
from perdure.stores.sqlite.transaction import Transaction
from perdure.stores.takeover import TAKEOVER_COMMIT, takeover_body

#: Runs freed in one transaction: others get their turn in between.
FREED_AT_ONCE: Final = 100


def add_worker(db: Connection, worker: WorkerInfo, now: int) -> None:
    """Enter a worker whose lock is held already. Raises StoreError for an id that is taken."""
    try:
        db.execute(query("add_worker"), (worker.id, worker.name, worker.host, worker.pid, now))
    except IntegrityError as error:
        raise StoreError(f"worker {worker.id} is registered already: take a fresh id") from error


def find_dead(db: Connection, locks: WorkerLocks) -> list[str]:
    """Workers that nobody is any more, also owners of runs that never registered."""
    registered = [id for (id,) in db.execute(query("workers")).fetchall()]
    unknown = [id for (id,) in db.execute(query("unregistered_owners")).fetchall()]
    return [id for id in registered if locks.is_dead(id)] + unknown


def free_some(db: Connection, dead: str, worker: str, now: int) -> int:
    """Free up to a hundred runs of a dead worker in one transaction; 0 when none is left."""
    with Transaction(db):
        held = db.execute(query("held"), (dead, FREED_AT_ONCE)).fetchall()
        for key, last in held:
            _take_over(db, key, last, dead, worker, now)
        if not held:
            db.execute(query("remove_worker"), (dead,))
    return len(held)


def _take_over(db: Connection, key: bytes, last: int, dead: str, worker: str, now: int) -> None:
    before, read = db.execute(query("row_head"), (key, last)).fetchone()
    at = max(now, before)
    row = (key, last + 1, at, worker, TAKEOVER_COMMIT, read, takeover_body(worker, at))
    db.execute(query_for("append_first", 1), row)
    db.execute(query("take_over"), {"last": last, "now": now, "key": key, "owner": dead})


def leave(db: Connection, worker: str, now: int) -> None:
    """Free what the worker still holds, and strike it off."""
    with Transaction(db):
        db.execute(query("release_all"), (now, worker))
        db.execute(query("remove_worker"), (worker,))


def claim_due(
    db: Connection, worker: str, definitions: Sequence[str], limit: int, now: int
) -> list[Claim]:
    """Take due runs, earliest first. Nothing is written when none is due."""
    if limit <= 0:
        return []
    names = dict.fromkeys(definitions)
    # Without the lock first: most polls find nothing, and then nobody is kept waiting.
    if not any(db.execute(query("due"), (name, now, 1)).fetchone() for name in names):
        return []
    with Transaction(db):
        due = [
            found
            for name in names
            for found in db.execute(query("due"), (name, now, limit)).fetchall()
        ]
        keys = [key for _, key in sorted(due)[:limit]]
        claimed = []
        for start in range(0, len(keys), FREED_AT_ONCE):
            part = keys[start : start + FREED_AT_ONCE]
            claimed += db.execute(query_for("claim", len(part)), (worker, *part)).fetchall()
    claimed.sort(key=lambda row: (row[4], row[0]))
    return [Claim(*row[:4]) for row in claimed]


def give_back(db: Connection, worker: str, claim: Claim, stalled: str | None, now: int) -> None:
    """Undo a claim, for a while or until somebody acts."""
    ready_at = NEVER if stalled is not None else now + GIVEN_BACK_FOR
    held = {"key": claim.key, "owner": worker, "epoch": claim.epoch}
    db.execute(query("give_back"), {**held, "ready_at": ready_at, "stalled": stalled})


def unstall(db: Connection, definitions: Sequence[str], now: int) -> int:
    """Make the stalled runs of these definitions due; how many."""
    count = 0
    with Transaction(db):
        for name in dict.fromkeys(definitions):
            found = db.execute(query("unstall"), {"definition": name, "now": now})
            count += found.rowcount
    return count
