"""Due: what was found is believed as long as nothing can have changed, and never for long."""

from __future__ import annotations

from perdure.stores.answers import Claim
from perdure.stores.sqlite.due import BELIEVED, Due, Look

NAMES = ("order",)


def learned(first: int | None = None, at: int = 1_000) -> Due:
    due = Due()
    due.learn(NAMES, due.changes, Look([], at, 7, first))
    return due


def test_nothing_is_due_until_the_first_run_is_and_no_longer_than_is_believed() -> None:
    assert learned(2_000).none(NAMES, 7, 1_999)
    assert not learned(2_000).none(NAMES, 7, 2_000)
    assert learned().none(NAMES, 7, 1_000 + BELIEVED - 1)
    assert not learned().none(NAMES, 7, 1_000 + BELIEVED)
    assert not learned().none(NAMES, 7, 999), "the clock was set back"


def test_other_definitions_and_others_writes_are_asked_about() -> None:
    assert not learned().none(("ship",), 7, 1_500)
    assert not learned().none(NAMES, 8, 1_500)
    assert not learned().none(NAMES, None, 1_500)


def test_what_this_process_writes_ends_it_also_while_the_look_was_under_way() -> None:
    due = learned()
    due.changed()
    assert not due.none(NAMES, 7, 1_500)
    before = due.changes
    due.changed()
    due.learn(NAMES, before, Look([], 1_000, 7))
    assert not due.none(NAMES, 7, 1_500)


def test_a_look_that_claimed_something_is_followed_by_another() -> None:
    due = Due()
    due.learn(NAMES, 0, Look([Claim(b"k", "order", "h", 1)], 1_000, 7, 900))
    assert not due.none(NAMES, 7, 1_000)
