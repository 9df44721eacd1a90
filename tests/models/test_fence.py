"""The rules of the stores leave no fault in any state that can be reached, and without any one of
them there is one: the search finds it."""

from __future__ import annotations

import pytest

from tests.models.fence import BEGIN, Budget, Rules
from tests.models.search import search


@pytest.mark.slow
def test_no_fault_can_be_reached_under_the_rules() -> None:
    # scenarios 11, 47, 84, 86, 93, 95
    found = search(Rules())
    assert found.faults == {}
    # Far fewer would mean that the model does nothing.
    assert found.states > 100_000


def test_an_own_row_that_is_refused_costs_a_reload_and_nothing_else() -> None:
    begin = BEGIN._replace(budget=Budget(2, 1, 1, 1))
    assert search(Rules(an_own_row_is_accepted=False), begin).faults == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("without", "fault"),
    [
        ({"takeover_writes_a_row": False}, "a run put away that has something to do"),
        ({"parking_looks_at_mail": False}, "a lost wake-up"),
        ({"posting_wakes": False}, "a lost wake-up"),
        ({"posting_knows_ids": False}, "a message twice"),
        ({"the_same_bytes_are_sent_again": False}, "an effect of what is not recorded"),
        ({"reconciling": False}, "an orphan"),
        ({"only_what_is_durable_is_read": False}, "a lost wake-up"),
        ({"parking_looks_at_the_epoch": False}, "a run put away that has something to do"),
        ({"rows_under_way": 2}, "a gap"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_without_a_rule_the_fault_it_protects_from_is_found(
    without: dict[str, bool], fault: str
) -> None:
    found = search(Rules(**without), BEGIN._replace(budget=Budget(2, 1, 1, 1)))
    assert fault in found.faults
    assert found.faults[fault], "there is a way that leads there"
