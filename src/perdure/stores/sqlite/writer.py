"""Writer: the only connection that writes, and who runs it when.

Work is done *inline*, on the caller's thread, while the disk is fast: a commit then costs its
fsync and no more. A thread in between costs two wake-ups, and against a busy event loop more: at
every statement it waits for its turn at the interpreter. When commits get slow, other work is
under way, or another process holds the lock, work goes to the writer thread instead, so that the
loop never waits long for a disk. So do the rows of several runs: where several are at work, the
loop has better to do meanwhile than to wait. One lock is shared by both ways.

Only this connection checkpoints, on the thread, between two commits: several that do so at once
can lose commits on the SQLite versions with the WAL-reset bug.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar

from perdure.model.errors import PerdureError, StoreError
from perdure.stores.sqlite.driver import (
    Connection,
    Error,
    explain,
    is_busy,
    is_lasting,
    patiently,
)

T = TypeVar("T")
Work: TypeAlias = Callable[[Connection], T]
Done: TypeAlias = Callable[[T | Exception], None]

#: The longest the loop may be kept waiting by one piece of inline work, in seconds.
INLINE_BUDGET: Final = 0.002
#: What a row costs beyond the commit itself, in seconds: measured, and only has to be roughly so.
_ROW: Final = 0.00001
#: How many commits the running estimate remembers, and how long it stays away from the loop once
#: that was slow.
_MEMORY: Final = 8
_RETREAT: Final = 1.0
#: Pages of the log, as estimated from rows, after which it is copied into the database.
_CHECKPOINT_PAGES: Final = 1000


class Writer:
    """Runs pieces of work on the writing connection, one at a time, each with one answer."""

    def __init__(
        self,
        db: Connection,
        path: Path,
        *,
        timeout: float,
        inline: bool = True,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """`check` raises StoreError where nothing must be written now."""
        self._db = db
        self._path = path
        self._timeout = timeout
        self._inline = inline
        self._check = check
        self._last: Work[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[tuple[Work[Any], Done[Any]] | None] = SimpleQueue()
        self._gate = threading.Lock()
        #: Pieces of work handed to the thread and not yet answered; only the loop counts.
        self._under_way = 0
        self._commit_time = 0.0
        self._away_until = 0.0
        self._rows = 0
        self._pages_a_row = 1.0
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="perdure-writer", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------------ on the loop's thread

    def submit(self, work: Work[T], done: Done[T], rows: int = 1, *, aside: bool = False) -> None:
        """Do a piece of work that touches about `rows` rows, `aside`: never on the loop's thread.
        It answers once, on that thread: with its result; with a StoreError after which it left no
        trace or, if the commit itself failed, an unknown one; or with another error, and no trace:
        the refusal it raised, or what doing it again would not mend."""
        if self._closed:
            done(StoreError(f"store {self._path} is closed"))
        elif not aside and self._fits_inline(rows) and not self._gate.locked():
            self._do_inline(work, done, rows)
        else:
            self._hand_over(work, done, rows)

    async def call(self, work: Work[T], rows: int = 1) -> T:
        """The same for a coroutine. Raises StoreError, and what the work refuses."""
        answer: asyncio.Future[T] = self._loop.create_future()

        def done(result: T | Exception) -> None:
            if answer.done():
                return
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        self.submit(work, done, rows)
        return await answer

    def peek(self, work: Work[T]) -> T | None:
        """What a quick look at the connection gives; None while it is in use or out of order."""
        if self._closed or self._under_way or self._gate.locked():
            return None
        try:
            with self._gate:  # as in _do_inline: open, and open again whatever interrupts this
                return work(self._db)
        except Error:
            return None

    async def close(self, last: Work[None]) -> None:
        """Finish everything queued, then `last`, then end the thread."""
        self._inline = False
        self._last = last
        try:
            await self.call(last)
        finally:
            self._closed = True
            self._queue.put(None)
            await asyncio.to_thread(self._thread.join)

    def _fits_inline(self, rows: int) -> bool:
        if not self._inline or self._under_way:
            return False
        if self._commit_time + rows * _ROW <= INLINE_BUDGET:
            return True
        # Once in a while it is tried again: disks are slow for a while, not for ever.
        return rows * _ROW <= INLINE_BUDGET and perf_counter() > self._away_until

    def _do_inline(self, work: Work[T], done: Done[T], rows: int) -> None:
        """The thread has nothing to do, and nobody is within: the gate is open."""
        began = perf_counter()
        answer: T | Exception
        try:
            # By `with`: an interrupt that came between taking it and the `try` would leave it shut.
            with self._gate:
                answer = self._attempt(work)
        except Exception as error:
            if is_busy(error):
                self._hand_over(work, done, rows)
                return
            answer = self._told(error)
        self._learn(perf_counter() - began - rows * _ROW)
        self._count(rows)
        done(answer)

    def _hand_over(self, work: Work[T], done: Done[T], rows: int) -> None:
        self._under_way += 1
        self._queue.put((work, done))
        self._count(rows)

    def _learn(self, seconds: float) -> None:
        if self._commit_time > INLINE_BUDGET:
            self._commit_time = seconds  # a try after a retreat: what was before is over
        else:
            # One slow commit is an accident, however slow it was; a few in a row are a slow disk.
            seconds = min(max(seconds, 0.0), INLINE_BUDGET * _MEMORY / 2)
            self._commit_time += (seconds - self._commit_time) / _MEMORY
        if self._commit_time > INLINE_BUDGET:
            self._away_until = perf_counter() + _RETREAT

    def _count(self, rows: int) -> None:
        self._rows += rows + 1
        if self._rows * self._pages_a_row >= _CHECKPOINT_PAGES:
            counted, self._rows = self._rows, 0
            self._hand_over(_checkpoint, partial(self._checkpointed, counted), 0)

    def _checkpointed(self, rows: int, pages: int | Exception) -> None:
        """Learn how many pages of log the rows really took. An error repeats at the next
        commit, which has somebody to tell."""
        if isinstance(pages, int):
            self._pages_a_row = min(max(pages / rows, 0.1), 10.0)

    def _answer(self, done: Done[Any], answer: Any) -> None:
        self._under_way -= 1
        done(answer)

    # ----------------------------------------------------------------------- on the writer thread

    def _serve(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            with self._gate:
                answer = self._try(work)
            try:
                self._loop.call_soon_threadsafe(self._answer, done, answer)
            except RuntimeError:
                return  # the loop is closed: nobody waits for answers any more

    def _try(self, work: Work[T]) -> T | Exception:
        try:
            return patiently(lambda: self._attempt(work), self._timeout)
        except Exception as error:
            return self._told(error)

    # ------------------------------------------------------------------ either, with the gate held

    def _attempt(self, work: Work[T]) -> T:
        try:
            return self._run(work)
        except BaseException:
            self._undo()
            raise

    def _run(self, work: Work[T]) -> T:
        if self._db.in_transaction:
            # Rolling back failed before. A statement that counts on being its own transaction
            # would become a part of this one, and be taken for durable.
            self._db.execute("ROLLBACK")
        if work is not self._last:
            self._check()
        return work(self._db)

    def _told(self, error: Exception) -> Exception:
        if isinstance(error, PerdureError) or is_lasting(error):
            return error
        return explain(error, self._path)

    def _undo(self) -> None:
        """Roll back what a failed piece of work left open; SQLite itself may already have. If
        that fails too, the first error is the one to tell, and the gate must be opened."""
        with suppress(Error):
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


def _checkpoint(db: Connection) -> int:
    """Copy the log into the database as far as readers allow; how many pages it has."""
    _, pages, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(pages)
