"""Purge: finished runs past their retention are forgotten, with everything of theirs (rule 15),
and rows from before a run went on as new (rule 14)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from perdure.stores.port import PURGE_AFTER
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.transaction import Transaction
from perdure.stores.sqlite.writer import Writer

#: Runs forgotten in one transaction: others get their turn in between.
PURGED_AT_ONCE: Final = 50
_PARTS: Final = ("forget_journal", "forget_payloads", "forget_mail", "forget_waiting", "forget_run")


#: Rows from before a run went on as new that are forgotten in one transaction.
TRIMMED_AT_ONCE: Final = 500


async def purge(writer: Writer, limit: int, now: Callable[[], int]) -> int:
    """Forget up to `limit` runs, and what no run reads any more; how many runs."""
    while await writer.call(trim_some, TRIMMED_AT_ONCE):
        pass
    purged = 0
    while (left := limit - purged) > 0:
        some = min(left, PURGED_AT_ONCE)
        gone = await writer.call(partial(purge_some, limit=some, now=now()), some * 10)
        purged += gone
        if gone < some:
            break
    return purged


def trim_some(db: Connection) -> bool:
    """Forget rows that stand before some run's new beginning; whether there may be more."""
    if not db.execute(query("trimmable")).fetchone():
        return False
    with Transaction(db):
        for key, first, base in db.execute(query("trimmable")).fetchall():
            some = {"key": key, "until": min(base, first + TRIMMED_AT_ONCE)}
            for part in ("trim_journal", "trim_payloads", "trimmed"):
                db.execute(query(part), some)
    return True


def purge_some(db: Connection, limit: int, now: int) -> int:
    """Forget up to `limit` runs in one transaction; how many. Nothing is written for none."""
    due = (now, now - PURGE_AFTER, limit)
    if not db.execute(query("purgeable"), (*due[:2], 1)).fetchone():
        return 0
    with Transaction(db):
        keys = db.execute(query("purgeable"), due).fetchall()
        for part in _PARTS:
            db.executemany(query(part), keys)
    return len(keys)
