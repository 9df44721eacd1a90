"""One SQLite file and the workers of held.py on it: launched, waited for, let go on; and what its
journal says in the end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from perdure import Client, Run
from perdure.codec.journal import decode_row
from perdure.kernel.actions import Action
from perdure.stores.answers import LoadedRun
from tests.chaos.held import HANDED, Launch
from tests.chaos.lane import PATIENCE, looked_into, stops_within
from tests.chaos.waiting import Execution
from tests.tidy.tree import ROOT

#: Seconds.
LEASE: Final = 3.0


class Post:
    """A worker's process, and its names so far."""

    def __init__(self, launch: Launch, errors: Path) -> None:
        words = [str(LEASE), "tests.chaos.held", msgspec.json.encode(launch).decode()]
        with errors.open("ab") as to:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.shortened", *words],
                cwd=ROOT, stdout=subprocess.PIPE, stderr=to,
            )  # fmt: skip
        self.id = self.hears().removeprefix("up ")

    def hears(self) -> str:
        """The next line that it says; it fails when the process has ended instead."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        if not line:
            self.process.communicate(timeout=PATIENCE)
        assert line, f"the worker ended: {self.process.returncode}"
        return line.rstrip("\n")

    def is_held(self) -> None:
        """Wait until it has stopped itself."""
        assert self.hears() == "held"
        assert stops_within(PATIENCE, self.process)

    def goes_on(self) -> str:
        """Let it go on; what became of what it held."""
        self.process.send_signal(signal.SIGCONT)
        return self.hears()

    def ends(self) -> None:
        """In order, at SIGTERM."""
        self.process.terminate()
        self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0


class Place:
    """The file, the log of executions, the gate that slow workers wait for."""

    lease = LEASE

    def __init__(self, folder: Path, disk: Path | None = None) -> None:
        self.db = (disk or folder) / "runs.db"
        self.log = folder / "log"
        self.log.touch()
        self.errors = folder / "errors"
        self.gate = folder / "gate"
        self._posts: list[Post] = []

    def launch(self, *, gated: bool = False, **more: Any) -> Post:
        gate = str(self.gate) if gated else ""
        number = len(self._posts)
        launch = Launch(number, str(self.db), str(self.log), gate=gate, **more)
        self._posts.append(Post(launch, self.errors))
        return self._posts[-1]

    def executions(self) -> list[tuple[int, str, int]]:
        """(number of the worker, node, attempt from 0), in order."""
        found = [msgspec.json.decode(line, type=Execution) for line in self._lines()]
        return [(e.launch, e.node, e.attempt) for e in found]

    def said(self) -> str:
        """What the workers have logged so far."""
        return self.errors.read_text()

    def until_executed(self, number: int, node: str) -> None:
        until(lambda: (number, node, 0) in self.executions())

    def owner(self, id: str) -> str | None:
        """Who has the run now, by the file."""
        db = looked_into(self.db)
        try:
            [(found,)] = db.execute("SELECT owner FROM run WHERE id = ?", (id,)).fetchall()
        finally:
            db.close()
        return None if found is None else str(found)

    def close(self) -> None:
        for post in self._posts:
            if post.process.returncode is None:
                post.process.kill()
                post.process.communicate()

    def _lines(self) -> list[bytes]:
        return self.log.read_bytes().splitlines()


@contextmanager
def place(folder: Path, disk: Path | None = None) -> Iterator[Place]:
    """Leave no process behind, whatever becomes of the test. `disk`: where the database is to lie,
    apart from the rest."""
    made = Place(folder, disk)
    try:
        yield made
    finally:
        made.close()


def until(holds: Callable[[], bool]) -> None:
    """Wait until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


async def started(client: Client, id: str, *, told: bool = True) -> Run[Any]:
    """A run of HANDED, told to go."""
    run: Run[Any] = await client.start(HANDED, {}, id=id)
    if told:
        await run.signal("go", {"by": id})
    return run


async def stored(client: Client, id: str) -> LoadedRun:
    store = client._store
    return await store.load((await store.describe("handed", id)).key)


def actions(loaded: LoadedRun) -> list[tuple[str, Action]]:
    """(who wrote it, action), in the order of the journal."""
    return [
        (row.writer, action)
        for row in loaded.journal
        for transition in decode_row(row.body)
        for action in transition.actions
    ]
