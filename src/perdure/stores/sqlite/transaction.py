"""Transactions: one to write, which takes the lock at once so that it cannot fail half-way for
it, and one to read several things as of one moment."""

from __future__ import annotations

from types import TracebackType

from perdure.stores.sqlite.driver import Connection


class Transaction:
    """`with Transaction(db):` commits at the end, or rolls back and lets the exception go on."""

    __slots__ = ("_begin", "_db")

    def __init__(self, db: Connection, *, write: bool = True) -> None:
        self._db = db
        self._begin = "BEGIN IMMEDIATE" if write else "BEGIN"

    def __enter__(self) -> None:
        self._db.execute(self._begin)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None:
            self._db.execute("COMMIT")
        elif self._db.in_transaction:
            self._db.execute("ROLLBACK")
