"""One SQLite file, and the processes that work on it one after the other and are killed.

After each kill the journal is read: what it held before must be there unchanged.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from perdure.codec.journal import decode_row
from perdure.kernel.actions import StartChild
from perdure.stores.sqlite.driver import Connection, connect
from tests.chaos.program import STOPPED, Execution, Launch, expected
from tests.tidy.tree import ROOT

RUNS_A_BATCH = 16
#: Seconds a process may take that nobody kills.
PATIENCE = 60

Row = tuple[str, int]
Outcome = tuple[str, str, int]


class Lane:
    """`kills`: how many processes were killed so far, of `launches`."""

    #: The module that is the process.
    program = "tests.chaos.program"

    def __init__(self, folder: Path, url: str, sync: str, seed: int) -> None:
        folder.mkdir()
        self.db = folder / "runs.db"
        self.log = folder / "log"
        self.kills = 0
        self.launches = 0
        self.runs: list[tuple[str, str, int]] = []
        self._url = url
        self._sync = sync
        self._chance = random.Random(seed)
        self._journal: dict[Row, bytes] = {}
        self._recorded: set[Outcome] = set()
        #: Nodes whose outcome is another run's: nobody executes them.
        self._asking: set[tuple[str, str]] = set()
        #: Per launch, what was recorded before it.
        self._before: dict[int, set[Outcome]] = {}
        self._batch()

    def _batch(self) -> None:
        """More runs to do."""
        first = len(self.runs)
        for i in range(first, first + RUNS_A_BATCH):
            self.runs.append((self._chance.choice(["mixed", "mixed", "chain"]), f"r{i}", i))

    def kill_until(self, kills: int) -> None:
        """Launch and kill; a process that was too quick for it gives way to the next batch."""
        while self.kills < kills:
            process = self._launch(self.runs[-2 * RUNS_A_BATCH :])
            if self._killed(process):
                self.kills += 1
                self._look()
            else:
                self._batch()

    def finish(self) -> None:
        """One more process, which ends by itself."""
        process = self._launch(self.runs)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        self._look()

    def _launch(self, runs: list[tuple[str, str, int]]) -> subprocess.Popen[bytes]:
        self.launches += 1
        self._before[self.launches] = set(self._recorded)
        launch = Launch(self.launches, str(self.db), str(self.log), self._url, self._sync, runs)
        return subprocess.Popen(
            [sys.executable, "-m", self.program, msgspec.json.encode(launch).decode()],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )

    def _killed(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait a random while, mostly into its work, then SIGKILL; False if it had ended.

        Now and then SIGTERM comes first, and the kill into what it does then."""
        assert process.stdout is not None
        if self._chance.random() < 0.85:
            process.stdout.readline()
            delay = self._chance.uniform(0.0, 0.35)
        else:
            delay = self._chance.uniform(0.05, 0.4)
        if not ends_within(delay, process):
            if self._chance.random() < 0.2:
                process.terminate()
                ends_within(self._chance.uniform(0.0, 0.05), process)
            process.kill()
        process.communicate()
        code = process.returncode
        assert code in (0, -signal.SIGKILL, -signal.SIGTERM, STOPPED), f"a worker failed: {code}"
        return code != 0

    # ------------------------------------------------------------------------------- looking

    def _look(self) -> None:
        """What the file holds now. Rows seen before are a prefix of those there now."""
        journal = self._rows()
        changed = [row for row, body in self._journal.items() if journal.get(row) != body]
        assert changed == [], f"recorded rows changed or went away: {changed}"
        for run, seq in journal:
            assert seq == 1 or (run, seq - 1) in journal, f"{run} has a gap before row {seq}"
        for row in sorted(journal.keys() - self._journal.keys(), key=lambda r: r[1]):
            self._asking |= _asking(row[0], journal[row])
            for outcome in _outcomes(row[0], journal[row]):
                assert outcome not in self._recorded, f"{outcome} was recorded twice"
                self._recorded.add(outcome)
        self._journal = journal

    def _rows(self) -> dict[Row, bytes]:
        if not self.db.exists():
            return {}
        db = looked_into(self.db)
        try:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'journal'").fetchone():
                return {}
            found = db.execute(
                "SELECT run.definition || '/' || run.id, seq, body FROM journal "
                "JOIN run ON run.key = journal.run"
            )
            return {(name, seq): bytes(body) for name, seq, body in found}
        finally:
            db.close()

    def executions(self) -> list[Execution]:
        """Every execution of a step."""
        lines = self.log.read_bytes().splitlines()
        return [msgspec.json.decode(line, type=Execution) for line in lines]

    def check_repeats(self, calls: list[Execution]) -> int:
        """Nothing was executed again whose outcome was recorded, nor twice by one process.
        How many executions were repeats."""
        executions = [*self.executions(), *calls]
        keys: dict[tuple[str, str], str] = {}
        times: Counter[tuple[str, str, int]] = Counter()
        launches: set[tuple[str, str, int, int]] = set()
        for e in executions:
            outcome = (e.run, e.node, e.attempt)
            assert outcome not in self._before[e.launch], f"{e} had been recorded before"
            assert (*outcome, e.launch) not in launches, f"{e} was made twice by one process"
            assert keys.setdefault((e.run, e.node), e.key) == e.key, f"{e} has another key"
            launches.add((*outcome, e.launch))
            times[outcome] += 1
        for outcome in self._recorded:
            made = times[outcome] > 0
            assert made or outcome[:2] in self._asking, f"{outcome} was recorded but never made"
        return sum(count - 1 for count in times.values())

    def expected(self) -> dict[str, Any]:
        """The outputs of all runs, by name."""
        return {f"{name}/{id}": expected(name, n) for name, id, n in self.runs}


def killed_side_by_side(lanes: Sequence[Lane], kills: int) -> None:
    """Kill so many processes of each lane, then let all that is to do be done."""
    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(lambda lane: lane.kill_until(kills), lanes))
        list(pool.map(Lane.finish, lanes))


def ends_within(seconds: float, process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def stops_within(seconds: float, process: subprocess.Popen[bytes]) -> bool:
    """Whether it is stopped by then, and did not end."""
    deadline = time.monotonic() + seconds
    look = os.WSTOPPED | os.WNOWAIT | os.WNOHANG
    while process.poll() is None:
        if os.waitid(os.P_PID, process.pid, look) is not None:
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return False


def looked_into(path: Path) -> Connection:
    """Read only: whoever closes last with more copies the log, and tidies up after the kill."""
    db = connect(path, "ro")
    db.execute("PRAGMA busy_timeout = 10000")
    return db


def _outcomes(run: str, body: bytes) -> list[Outcome]:
    return [
        (run, action.node, action.attempt)
        for transition in decode_row(body)
        for action in transition.actions
        if type(action).__name__ in ("CompleteTask", "FailTask", "RetryTask")
    ]


def _asking(run: str, body: bytes) -> set[tuple[str, str]]:
    return {
        (run, action.node)
        for transition in decode_row(body)
        for action in transition.actions
        if isinstance(action, StartChild)
    }
