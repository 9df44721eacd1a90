"""A step further, as one record, does to a snapshot what its three actions do."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import Raw

from perdure.kernel.actions import CreateTask, DispatchTask, RetryTask, Transition
from perdure.kernel.fold import fold, fold_transition
from perdure.kernel.moves import IllegalMove
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.run import Run
from perdure.model.failure import FailureRecord
from tests.replay.onwards import onwards
from tests.replay.opening import AT, opened
from tests.unit.kernel.harness import plain, shown

BEGUN = Transition(AT, [opened(), CreateTask("t1", "a", "pending"), DispatchTask("t1", "a")])
RETRIED = Transition(AT + 1, [RetryTask("t1", "a", 0, FailureRecord("Busy", "later"), AT + 5)])


def onward(**more: Any) -> Onward:
    given: dict[str, Any] = {"at": AT + 9, "task": "t1", "node": "a", "next_task": "t2"}
    return Onward(**(given | {"next": "b", "output": Raw(b"1"), "input": Raw(b"2")} | more))


@pytest.mark.parametrize("before", [[BEGUN], [BEGUN, RETRIED]])
def test_it_is_folded_as_its_actions_are(before: list[Decided]) -> None:
    one = onward(attempt=len(before) - 1)
    assert shown(fold([*before, one])) == shown(fold([*before, plain(one)]))


def test_a_journal_of_them_is_folded_as_its_actions_are() -> None:
    journal = [transition for row in onwards() for transition in row]
    found = fold(journal)
    assert shown(found) == shown(fold([plain(transition) for transition in journal]))
    assert found.status == "completed"
    assert found.completed == 5


def test_it_forgets_the_crashes_before_it() -> None:
    run = fold([BEGUN])
    run.crashes = 3
    fold_transition(run, onward())
    assert run.crashes == 0


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(onward(node="c"), id="no task"),
        pytest.param(onward(next="a"), id="reached before"),
    ],
)
def test_what_no_rule_allows_is_refused_for_the_same_reason(wrong: Onward) -> None:
    said = []
    for one in (wrong, plain(wrong)):
        with pytest.raises(IllegalMove) as refused:
            fold([BEGUN, one])
        said.append(str(refused.value).partition(":")[0])
    assert said[0] == said[1]


def test_a_node_that_has_ended_leads_on_no_more() -> None:
    with pytest.raises(IllegalMove, match="node a"):
        fold([BEGUN, onward(), onward(next="c", next_task="t3")])


def test_a_run_that_was_never_opened_does_not_go_on() -> None:
    with pytest.raises(IllegalMove, match="no task"):
        fold_transition(Run(), onward())
