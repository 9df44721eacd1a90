"""The demo's judge: it must see every way of breaking what is promised."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from perdure.cli.demo.account import Account, accounts, checks
from perdure.cli.demo.story import twice
from perdure.cli.nodes import NodeBook, NodeView

TYPES = {"fetch": "HTTP", "check": "SWITCH", "review": "TASK", "charge": "HTTP", "ship": "TASK"}
#: What a run that was killed during `charge` must have asked of others.
ASKED = Counter({"fetch": 1, "charge": 2, "ship": 1})


def book(**nodes: str) -> NodeBook:
    found = NodeBook()
    for node, status in nodes.items():
        branches = ["charge"] if node == "check" else None
        output = {"n": 1} if status == "completed" else None
        found.nodes[node] = NodeView(node, status, output=output, branches=branches)
    return found


def then() -> NodeBook:
    return book(fetch="completed", check="completed", review="skipped", charge="pending")


def now() -> NodeBook:
    return book(
        fetch="completed", check="completed", review="skipped", charge="completed", ship="completed"
    )


def judged(asked: Counter[str] = ASKED, after: NodeBook | None = None) -> list[Account]:
    return accounts(TYPES, then(), after or now(), asked)


def broken(found: list[Account], status: str = "completed", charged: Any = (84.5,)) -> list[str]:
    return [c.promise.split(":")[0] for c in checks(found, status, charged, 84.5) if not c.held]


def test_a_run_that_goes_on_as_promised_breaks_nothing() -> None:
    found = judged()
    assert broken(found) == []
    assert [(a.node, a.before, a.after) for a in found] == [
        ("fetch", "done and recorded", "not done again"),
        ("check", "decided and recorded", "not decided again"),
        ("review", "not needed for this order", ""),
        ("charge", "under way; nobody wrote down how it ended", "done again"),
        ("ship", "not reached yet", "done"),
    ]


def test_a_step_that_was_ordered_and_had_not_begun_runs_once() -> None:
    found = judged(ASKED - Counter(charge=1))
    assert broken(found) == []
    assert found[3].after == "done (it had not really begun)"


REPEATED = "No step that was recorded ran again, and none was left out."
UNDER_WAY = "What ran twice was under way at the kill."
ONCE = "The card was charged once"


@pytest.mark.parametrize(
    ("more", "promise"),
    [
        ({"fetch": 1}, REPEATED),
        ({"ship": 1}, REPEATED),
        ({"ship": -1}, REPEATED),
        ({"review": 1}, REPEATED),
        ({"charge": 1}, UNDER_WAY),
        ({"charge": -2}, UNDER_WAY),
    ],
)
def test_what_ran_too_often_or_too_seldom_is_seen(more: dict[str, int], promise: str) -> None:
    asked = Counter(ASKED)
    asked.update(more)
    assert broken(judged(asked)) == [promise]


@pytest.mark.parametrize("charged", [[], [84.5, 84.5], [85.0]])
def test_a_card_charged_never_twice_or_wrongly_is_seen(charged: list[float]) -> None:
    assert broken(judged(), charged=charged) == [ONCE]


def test_a_run_that_was_not_finished_is_seen() -> None:
    assert broken(judged(), status="failed") == ["The order was finished."]


def test_a_recorded_outcome_that_changed_or_went_is_seen() -> None:
    changed, gone, other = now(), now(), now()
    changed.nodes["fetch"].output = {"n": 2}
    del gone.nodes["review"]
    other.nodes["check"].branches = ["review"]
    promise = "What was recorded before the kill was neither lost nor changed."
    for after in (changed, gone, other):
        assert broken(judged(after=after)) == [promise]


def test_the_story_says_what_ran_twice_and_why_the_card_was_not_charged_again() -> None:
    told = "\n".join(twice(judged(), {"charge": {"key-1"}}))
    assert "Ran once:  fetch and ship." in told
    assert "Ran twice: charge. At the kill it was under way" in told
    assert "same idempotency key:\n  key-1\n" in told


def test_the_story_of_a_kill_between_steps_says_that_nothing_ran_twice() -> None:
    once = accounts(TYPES, book(fetch="completed"), now(), Counter(fetch=1, charge=1, ship=1))
    ran = "Ran once:  fetch, charge and ship."
    assert twice(once, {}) == [ran, "Ran twice: nothing. The kill came between two steps."]
    begun = judged(Counter(fetch=1, charge=1, ship=1))
    assert twice(begun, {}) == [ran, "Ran twice: nothing. Charge had not really begun."]
