"""The last act of the demo: a trip whose payment is declined, whose worker is killed while it
undoes what was booked, and which the next worker undoes to the end.

The witness is the agencies' own log, not the engine's.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec

from perdure.cli.demo.account import Check, Kill, times, writers_of
from perdure.cli.demo.journal import Journal
from perdure.cli.demo.logs import read_lines
from perdure.cli.demo.stage import Crew, Said, typed, worker_words
from perdure.cli.demo.story import Teller
from perdure.cli.options import RunName

TRIP: Final = RunName("trip", "7")
FILE: Final = "trip.py"
NAMES: Final = ("six", "seven")
#: What is undone, the last that was done first.
UNDONE: Final = ("car", "hotel", "flight")
#: The undo in whose middle the worker is killed, and when: seconds since it was asked for.
MIDDLE: Final = "hotel"
WHEN: Final = (0.05, 0.8)


class Reversal(msgspec.Struct, frozen=True):
    """One step that was undone. `by`: who recorded its undo; `asked` and `did`: how often the
    agency was asked to cancel, and canceled; `booked`: how often it booked."""

    step: str
    by: str
    asked: int
    did: int
    booked: int
    status: str

    @property
    def others(self) -> str:
        """What the agency's log says, in words."""
        return (
            f"booked {times(self.booked)}; asked to cancel {times(self.asked)}, "
            f"canceled {times(self.did)}"
        )


class Rollback(msgspec.Struct, frozen=True):
    """What came of the act."""

    kill: Kill
    steps: Sequence[Reversal]
    checks: Sequence[Check]


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


def found(journal: Journal, kill: Kill, lines: Sequence[Mapping[str, Any]]) -> Rollback:
    """The account of the trip, by its records and the agencies' log."""
    writers = writers_of(journal.records, journal.names)
    nodes = journal.book.nodes
    steps = []
    for step in UNDONE:
        own = [line for line in lines if line["thing"] == step]
        view = nodes.get(step)
        steps.append(
            Reversal(
                step,
                writers.get(f"{step}~undo", ""),
                sum(line.get("asked") == "canceled" for line in own),
                sum(line.get("did") == "canceled" for line in own),
                sum(line.get("did") == "booked" for line in own),
                "not reached" if view is None else view.status,
            )
        )
    return Rollback(kill, steps, _checks(kill, steps, journal, lines))


def _checks(
    kill: Kill,
    steps: Sequence[Reversal],
    journal: Journal,
    lines: Sequence[Mapping[str, Any]],
) -> list[Check]:
    order = tuple(line["thing"] for line in lines if line.get("did") == "canceled")
    again = [s for s in steps if s.asked != 1]
    ends = json.dumps(
        [r["failure"] for r in journal.records if r["do"] == "FinishRun"], default=str
    )
    return [
        Check("The trip failed for what it failed for: the card is declined.",
              journal.status == "failed" and "the card is declined" in ends),
        Check("All that was booked was canceled, once each, the last booking first.",
              order == UNDONE and all(s.did == s.booked == 1 for s in steps)
              and all(s.status == "compensated" for s in steps)),
        Check("The next worker went on where the dead one was: only what was under way at the "
              "kill was asked for once more.",
              all(s.step in kill.open_undos and s.asked == 2 for s in again)),
    ]  # fmt: skip
