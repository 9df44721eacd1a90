"""What is recorded of a run that ended: whole, and what its row says."""

from __future__ import annotations

from perdure.codec.journal import decode_row
from perdure.kernel.actions import Transition
from perdure.kernel.fold import fold
from perdure.stores.answers import LoadedRun, RunRow


def recorded(row: RunRow, loaded: LoadedRun) -> list[Transition]:
    """The run's journal, of which no row is missing, and which ends as the run's row does."""
    journal = loaded.journal
    assert [r.seq for r in journal] == list(range(1, len(journal) + 1))
    transitions = [t for r in journal for t in decode_row(r.body)]
    folded = fold(transitions)
    assert (folded.status, folded.active) == (row.status, 0)
    return transitions
