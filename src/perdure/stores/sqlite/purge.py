"""Purge: finished runs past their retention are forgotten, with everything of theirs (rule 15)."""

from __future__ import annotations

from typing import Final

from perdure.stores.port import PURGE_AFTER
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.transaction import Transaction

#: Runs forgotten in one transaction: others get their turn in between.
PURGED_AT_ONCE: Final = 50
_PARTS: Final = ("forget_journal", "forget_payloads", "forget_mail", "forget_run")


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
