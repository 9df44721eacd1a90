"""What a SQLite file under test holds, looked at over and over while others write to it.

What was there before must be there unchanged, and nothing may be recorded twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from perdure.codec.journal import decode_row
from perdure.kernel.actions import Claimed, StartChild
from tests.chaos.lane import looked_into

#: A run's key, and the place in its journal.
Row = tuple[bytes, int]
#: (task, attempt), attempts from 0. Of a wait's end the attempt is -1.
Outcome = tuple[str, int]

_OUTCOMES = ("CompleteTask", "FailTask", "RetryTask", "ResolveWait")


class Record:
    """`recorded`: which outcomes were there at the last look."""

    def __init__(self, db: Path) -> None:
        self.db = db
        self.recorded: set[Outcome] = set()
        #: Tasks whose outcome is another run's: nobody executes them.
        self.asking: set[str] = set()
        self.rows: dict[Row, tuple[str, int, bytes]] = {}
        #: Declared dead while it was stopped -> the runs it held still, and their last rows then.
        self._silenced: dict[str, dict[bytes, int]] = {}

    def silence(self, workers: Iterable[str]) -> None:
        """From the last look on, these must write nothing of a run that others took. Who is struck
        off holds its runs until they are taken, a few at a time: that is when the fence moves."""
        last: dict[bytes, int] = {}
        for run, seq in self.rows:
            last[run] = max(seq, last.get(run, 0))
        for worker in workers:
            held = {run: last.get(run, 0) for run in self._held(worker)}
            self._silenced.setdefault(worker, held)

    @property
    def silenced(self) -> int:
        """How many workers were declared dead while they were stopped."""
        return len(self._silenced)

    def look(self) -> None:
        """Rows seen before are a prefix of those there now; each outcome is there once."""
        found = self._read()
        changed = [row for row, before in self.rows.items() if found.get(row) != before]
        assert changed == [], f"recorded rows changed or went away: {changed}"
        new = sorted(found.keys() - self.rows.keys(), key=lambda row: row[1])
        for run, seq in new:
            writer, read, body = found[run, seq]
            held = self._silenced.get(writer)
            # To free what a dead worker held is everybody's right, and nothing of the run's own.
            if held is not None and not _frees(body):
                before = found[run, seq - 1][0] if seq > 1 else "nobody"
                still = run in held and (seq - 1 <= held[run] or before == writer)
                assert still, f"{writer} wrote {run.hex()} {seq} though {before} had it"
            assert seq == 1 or (run, seq - 1) in found, f"{run.hex()} has a gap before {seq}"
            assert seq == 1 or found[run, seq - 1][1] <= read, f"{run.hex()} {seq} unread its mail"
            self.asking |= _asking(body)
            for outcome in _outcomes(body):
                assert outcome not in self.recorded, f"{outcome} was recorded twice"
                self.recorded.add(outcome)
        self.rows = found

    def _read(self) -> dict[Row, tuple[str, int, bytes]]:
        if not self.db.exists():
            return {}
        db = looked_into(self.db)
        try:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'journal'").fetchone():
                return {}
            rows = db.execute("SELECT run, seq, writer, read, body FROM journal")
            return {(run, seq): (w, read, bytes(body)) for run, seq, w, read, body in rows}
        finally:
            db.close()

    def _held(self, worker: str) -> list[bytes]:
        db = looked_into(self.db)
        try:
            return [key for (key,) in db.execute("SELECT key FROM run WHERE owner = ?", (worker,))]
        finally:
            db.close()

    def workers(self) -> dict[int, set[str]]:
        """Who is registered, by process."""
        if not self.db.exists():
            return {}
        found: dict[int, set[str]] = defaultdict(set)
        db = looked_into(self.db)
        try:
            if db.execute("SELECT 1 FROM sqlite_master WHERE name = 'worker'").fetchone():
                for pid, id in db.execute("SELECT pid, id FROM worker"):
                    found[pid].add(id)
        finally:
            db.close()
        return found


def _outcomes(body: bytes) -> list[Outcome]:
    return [
        (action.task, getattr(action, "attempt", -1))
        for transition in decode_row(body)
        for action in transition.actions
        if type(action).__name__ in _OUTCOMES
    ]


def _frees(body: bytes) -> bool:
    return all(
        isinstance(action, Claimed)
        for transition in decode_row(body)
        for action in transition.actions
    )


def _asking(body: bytes) -> set[str]:
    return {
        action.task
        for transition in decode_row(body)
        for action in transition.actions
        if isinstance(action, StartChild)
    }
