"""Mail: numbered per run under the lock of its row, so that parking and posting see each other
(rule 4)."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.stores.answers import Mail, Posted
from perdure.stores.rows import Message, Park
from perdure.stores.sqlite.driver import Connection
from perdure.stores.sqlite.queries import query
from perdure.stores.sqlite.transaction import Transaction
from perdure.stores.takeover import ENDS_STALL, ON_A_STALL


def post(db: Connection, messages: Sequence[Message], now: int) -> list[Posted]:
    """Put messages into mailboxes; an answer per message, in order."""
    with Transaction(db):
        return [post_one(db, message, now) for message in messages]


def post_one(db: Connection, message: Message, now: int) -> Posted:
    """Put a message into its mailbox, within a transaction."""
    found = db.execute(query("addressee"), (message.definition, message.run_id)).fetchone()
    if found is None:
        return Posted("missing")
    key, status, _, stalled = found
    there = db.execute(query("letter"), (key, message.id)).fetchone()
    if there is not None:
        return Posted("duplicate", there[0], key)
    if status != "running":
        return Posted("finished", 0, key)
    numbered = {"key": key, "now": now, "ends_stall": message.kind in ENDS_STALL}
    [(n,)] = db.execute(query("number_letter"), numbered).fetchall()
    name = ON_A_STALL if stalled and message.kind in ENDS_STALL else message.name
    letter = (key, n, message.id, message.kind, name, message.body)
    db.execute(query("keep_letter"), letter)
    return Posted("posted", n, key)


def park(db: Connection, worker: str, parks: Sequence[Park]) -> list[bool]:
    """Let waiting runs go; per run whether it was."""
    with Transaction(db):
        return [
            db.execute(
                query("park"),
                {
                    "key": one.run,
                    "owner": worker,
                    "epoch": one.epoch,
                    "read": one.read,
                    "ready_at": one.ready_at,
                },
            ).rowcount
            == 1
            for one in parks
        ]


def read_mail(db: Connection, key: bytes, after: int) -> list[Mail]:
    """A run's messages from a number on."""
    return [Mail(*row) for row in db.execute(query("mail"), (key, after)).fetchall()]
