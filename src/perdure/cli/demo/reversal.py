"""The account of a trip that was undone: who recorded each undo, beside what the agencies say they
were asked to do, and whether that is what was promised.

The witness is the agencies' own log, not the engine's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from perdure.cli.demo.account import Check, Kill, times, writers_of
from perdure.cli.demo.journal import Journal

#: What is undone, the last that was done first.
UNDONE: Final = ("car", "hotel", "flight")


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
