"""The last act of the demo: a trip whose payment is declined, whose worker is killed while it
undoes what was booked, and which the next worker undoes to the end.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import msgspec

from perdure.cli.demo.account import Kill
from perdure.cli.demo.journal import Journal
from perdure.cli.demo.logs import read_lines
from perdure.cli.demo.reversal import Rollback, found
from perdure.cli.demo.stage import Crew, Said, typed, worker_words
from perdure.cli.demo.story import Teller
from perdure.cli.options import RunName

TRIP: Final = RunName("trip", "7")
FILE: Final = "trip.py"
NAMES: Final = ("six", "seven")
#: The undo in whose middle the worker is killed, and when: seconds since it was asked for.
MIDDLE: Final = "hotel"
WHEN: Final = (0.05, 0.8)


class RollbackAct:
    """The act, in a folder with trip.py in it. `seed`: draws the moment of the kill."""

    def __init__(self, tell: Teller, folder: Path, store: str, seed: int) -> None:
        self._tell = tell
        self._folder = folder
        self._store = store
        self._random = random.Random(f"{seed}/trip")  # noqa: S311  no secret

    def run(self, number: int) -> Rollback:
        """The whole act. Every process that it starts has ended when this returns or raises."""
        self._tell.act(
            number, "A trip cannot be paid, and its worker is killed while it undoes the bookings",
            "A saga: flight, hotel and car are booked, each with what cancels it; then the card "
            "is declined.",
        )  # fmt: skip
        with ExitStack() as stack:
            journal = stack.enter_context(Journal(self._store, TRIP, self._tell.event))
            crew = Crew(self._folder, self._store, stack, files=(FILE,))
            for name in NAMES:
                crew.hire(name)
                self._tell.typed(typed(worker_words(name, (FILE,))) + " &")
            for worker in crew.alive:
                worker.ready()
            self._command("start", FILE, "--id", TRIP.id, "--input", '"Lisbon"')
            self._tell.say()
            journal.until(self._undoing, "the undoing")
            time.sleep(self._random.uniform(*WHEN))
            kill = self._kill(crew, journal)
            journal.until(lambda: False, "the end of the trip")
            self._tell.say()
            self._command("show", str(TRIP))
            journal.look()
            return found(journal, kill, read_lines(self._folder / "agencies.log"))

    def _undoing(self) -> bool:
        return any(
            line.get("asked") == "canceled" and line["thing"] == MIDDLE
            for line in read_lines(self._folder / "agencies.log")
        )

    def _kill(self, crew: Crew, journal: Journal) -> Kill:
        journal.look()
        known = len(journal.records)
        worker = crew.kill(journal.holder)
        killed = time.time()
        self._tell.killed(worker.name, worker.pid, "in the middle of undoing")
        journal.look()
        kill = Kill(worker.name, worker.pid, journal.book)
        journal.until(lambda: journal.claim_after(known) is not None, "a takeover")
        claim = journal.claim_after(known)
        if claim is not None:
            taker, at = claim
            kill = msgspec.structs.replace(kill, taker=taker, after=at.timestamp() - killed)
        self._tell.taken(kill, "trip")
        return kill

    def _command(self, *words: str) -> None:
        with Said(words, self._folder, self._store) as said:
            self._tell.typed(typed(words), said.text())
