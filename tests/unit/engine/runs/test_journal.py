"""A journal read back: a step further, as one record, says what its three actions say."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec import Raw

from perdure.codec.journal import encode_row
from perdure.engine.runs import journal
from perdure.engine.runs.journal import Recorded, read_journal
from perdure.kernel.actions import (
    AnyAction,
    Claimed,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    ReopenRun,
    SetPaused,
    Transition,
)
from perdure.kernel.onward import Decided, Onward
from perdure.model.failure import FailureRecord
from perdure.stores.answers import LoadedRun, RunRow, StoredRow
from tests.replay.onwards import onwards
from tests.replay.opening import AT, opened
from tests.unit.kernel.harness import shown

ROW = RunRow(b"k", "order", "order-1", "3", "9f2c", "running", AT, "w", 1, 0, 1, 0)
BEGUN = Transition(AT, [opened(), CreateTask("t1", "a", "pending"), DispatchTask("t1", "a")])
ONWARD = Onward(AT + 5, "t1", "a", "t2", "b", Raw(b"1"), Raw(b"2"))
FAILED = FailureRecord("Error", "no")
AGAIN: list[AnyAction] = [CreateTask("t3", "a", "pending"), DispatchTask("t3", "a")]

JOURNALS: dict[str, list[list[Decided]]] = {
    "golden": onwards(),
    "paused": [[BEGUN], [Transition(AT + 1, [SetPaused(True)])], [ONWARD]],
    "lost and reset": [
        [BEGUN],
        [ONWARD],
        [Transition(AT + 6, [Claimed("v")])],
        [Transition(AT + 7, [FailTask("t2", "b", 0, FAILED)])],
        [Transition(AT + 7, [FinishRun("failed", failure=FAILED)])],
        [Transition(AT + 8, [ReopenRun("3", "9f2c", ("a", "b")), *AGAIN])],
        [Onward(AT + 9, "t3", "a", "t4", "b")],
    ],
}


def read(rows: Sequence[Sequence[Decided]]) -> Recorded:
    bodies = [encode_row(row)[0] for row in rows]
    stored = [StoredRow(seq, AT, "w", body) for seq, body in enumerate(bodies, 1)]
    return read_journal(LoadedRun(ROW, stored))


@pytest.mark.parametrize("name", JOURNALS)
def test_what_is_known_after_a_step_further_is_what_its_actions_say(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = JOURNALS[name]
    found = [read(rows[:until]) for until in range(1, len(rows) + 1)]

    def by_actions(recorded: Recorded, seq: int, onward: Onward) -> None:
        journal._note(recorded, seq, onward.actions)

    monkeypatch.setattr(journal, "_note_onward", by_actions)
    for until, one in enumerate(found, 1):
        expected = read(rows[:until])
        assert shown(one.run) == shown(expected.run)
        one.run = expected.run
        assert one == expected


def test_these_journals_say_all_that_may_be_known() -> None:
    """Else the comparison would compare nothing."""
    assert read(JOURNALS["paused"]).held == {"b"}
    assert "b" in read(JOURNALS["lost and reset"][:3]).lost
    assert "b" not in read(JOURNALS["lost and reset"]).lost
    golden = read(JOURNALS["golden"][:5])
    assert golden.outputs["c"] == (5, 1)
    assert golden.inputs["d"].place == (5, 0)
    assert golden.due["d"] == 0
