"""Workers: who is alive, and what the dead held (rules 2, 8).

Two things say that a worker is dead: its lock, which the operating system frees with its process,
is seen at once; its lease, which it extends with every beat, finds the one that is there and does
nothing (stopped, or deaf). Being struck off the table is the declaration: its runs then belong to
an owner that is not registered, and whoever sweeps frees them, by appending to each journal first.
That row is the fence; locks and leases only say how soon.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from perdure.model.errors import StoreError
from perdure.stores.answers import WorkerSeen
from perdure.stores.port import LEASE
from perdure.stores.rows import WorkerInfo
from perdure.stores.sqlite.driver import (
    Connection,
    Error,
    IntegrityError,
    connect,
    explain,
    patiently,
)
from perdure.stores.sqlite.locks import WorkerLocks
from perdure.stores.sqlite.queries import query, query_for
from perdure.stores.sqlite.transaction import Transaction
from perdure.stores.takeover import TAKEOVER_COMMIT, takeover_body

#: Runs freed in one transaction: others get their turn in between.
FREED_AT_ONCE: Final = 100


def add_worker(db: Connection, worker: WorkerInfo, now: int) -> None:
    """Enter a worker whose lock is held already. Raises StoreError for an id that is taken."""
    values = (worker.id, worker.name, worker.host, worker.pid, now, now + LEASE)
    try:
        db.execute(query("add_worker"), values)
    except IntegrityError as error:
        raise StoreError(f"worker {worker.id} is registered already: take a fresh id") from error


def extend(db: Connection, worker: str, now: int) -> bool:
    """A fresh lease, unless the worker was declared dead."""
    return db.execute(query("extend_lease"), (now + LEASE, worker)).rowcount == 1


def extend_beside(path: Path, worker: str, now: Callable[[], int], timeout: float) -> bool:
    """`extend` on any thread, on a connection of its own, which is closed again. What it writes
    need not outlive a power cut: nobody would be there to hold the lease."""
    try:
        with closing(patiently(lambda: connect(path, "rw"), timeout)) as db:
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            return patiently(lambda: extend(db, worker, now()), timeout)
    except Error as error:
        raise explain(error, path) from error


class Seen(msgspec.Struct, frozen=True):
    """What a beat sees: the keys of the runs under its name; which of them have unread mail, up
    to which number; until when the others' leases last; and whether some owner is not
    registered."""

    held: frozenset[bytes]
    mail: dict[bytes, int]
    others: dict[str, int]
    lost: bool


def look_around(db: Connection, worker: str) -> Seen:
    """All that a beat asks, in one statement."""
    held, mail, others, lost = [], {}, {}, False
    for key, newest, id, until in db.execute(query("seen_at_beat"), (worker,)).fetchall():
        if key is not None:
            held.append(key)
            if newest is not None:
                mail[key] = newest
        elif until is None:
            lost = True
        elif id != worker:
            others[id] = until
    return Seen(frozenset(held), mail, others, lost)


def any_dead(others: Mapping[str, int], locks: WorkerLocks, now: int) -> bool:
    """Whether a sweep would strike somebody off."""
    return any(until <= now or locks.seems_dead(id, until) for id, until in others.items())


def read_mailed(db: Connection, worker: str) -> dict[bytes, int]:
    """Which of them have mail that their last row has not read, up to which number."""
    return dict(db.execute(query("mailed"), (worker,)).fetchall())


def list_workers(db: Connection, locks: WorkerLocks, now: int) -> list[WorkerSeen]:
    """Who is registered, and whether it is alive."""
    rows = db.execute(query("list_workers")).fetchall()
    return [
        WorkerSeen(WorkerInfo(id, name, host, pid), until > now and not locks.seems_dead(id, until))
        for id, name, host, pid, until in rows
    ]


def bury(db: Connection, locks: WorkerLocks, worker: str, now: int) -> None:
    """Strike off whoever is dead, but for `worker` itself, which is here and asks."""
    gone: dict[str, bool] = {}
    for id, until in db.execute(query("workers")).fetchall():
        if id != worker and ((ended := locks.is_dead(id, until)) or until <= now):
            gone[id] = ended
    if gone:
        with Transaction(db):
            for id, ended in gone.items():
                db.execute(query("remove_dead"), {"id": id, "gone": ended, "now": now})


def tidy_locks(db: Connection, locks: WorkerLocks) -> None:
    """Remove what workers left behind that were struck off alive, and have ended since."""
    locks.tidy([id for id, _ in db.execute(query("workers")).fetchall()])


def find_lost(db: Connection) -> list[str]:
    """Owners of runs that are not registered: the dead, and some that never were."""
    return [owner for (owner,) in db.execute(query("unregistered_owners")).fetchall()]


def free_some(db: Connection, dead: str, worker: str, now: int) -> int:
    """Free up to a hundred runs of a dead worker in one transaction; 0 when none is left."""
    with Transaction(db):
        held = db.execute(query("held"), (dead, FREED_AT_ONCE)).fetchall()
        for key, status, last in held:
            if status == "running":
                _take_over(db, key, last, dead, worker, now)
            else:
                db.execute(query("disown"), (key, dead))
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
