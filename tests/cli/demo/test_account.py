"""The demo's judge: it must see every way of breaking what is promised."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.cli.demo.account import Account, Kill, accounts, checks, writers_of
from perdure.cli.node_view import NodeView
from perdure.cli.nodes import NodeBook

TYPES = {
    "fetch": "HTTP", "check": "SWITCH", "approval": "WAIT_FOR_SIGNAL", "charge": "HTTP",
    "courier": "WAIT", "ship": "TASK",
}  # fmt: skip


def book(**nodes: str) -> NodeBook:
    found = NodeBook()
    for node, status in nodes.items():
        output = {"n": 1} if status == "completed" else None
        view = NodeView(node, status, attempt=int(node in ("fetch", "charge", "ship")))
        view.output, view.branches = output, ["approval"] if node == "check" else None
        found.nodes[node] = view
    return found


def now() -> NodeBook:
    """A run of which two attempts were needed to fetch, and one worker died at the payment."""
    found = book(**dict.fromkeys(TYPES, "completed"))
    found.nodes["fetch"].attempt = 2
    found.nodes["charge"].lost = 1
    found.nodes["approval"].signal = "approved"
    return found


KILLS = (
    Kill("one", 1, book(fetch="completed", check="completed", approval="waiting"), "two", 0.5),
    Kill("two", 2, book(fetch="completed", check="completed", charge="pending"), "three", 0.5),
)


def asked(node: str, key: str = "", *, busy: bool = False) -> dict[str, Any]:
    return {"asked": node, "key": key or f"key-of-{node}", "busy": busy}


def did(node: str, key: str = "", **more: Any) -> dict[str, Any]:
    return {"did": node, "key": key or f"key-of-{node}", **more}


LINES = [
    asked("fetch", busy=True), asked("fetch"), asked("charge"), did("charge", amount=84.5),
    asked("charge"), asked("ship"), did("ship"),
]  # fmt: skip


def judged(lines: Any = LINES, after: NodeBook | None = None) -> list[Account]:
    return accounts(TYPES, after or now(), {"fetch": "one"}, KILLS, lines)


def broken(found: list[Account], status: str = "completed", charged: Any = (84.5,)) -> list[str]:
    held = checks(found, KILLS, status, charged, 84.5)
    return [check.promise.split(":")[0].split(",")[0] for check in held if not check.held]


FINISHED = "The order was finished"
KEPT = "What was recorded before a kill was neither lost nor changed."
FAIR = "No recorded step ran again"
ONCE = "Whatever was asked for twice was done once"
CHARGED = "The card was charged once"
SHIPPED = "The parcel was shipped once."


def test_a_run_that_goes_on_as_promised_breaks_nothing() -> None:
    found = judged()
    assert broken(found) == []
    assert [(a.node, a.by, a.journal, a.others) for a in found] == [
        ("fetch", "one", "done at attempt 2", "asked twice with one key, busy once"),
        ("check", "", "chose approval", ""),
        ("approval", "", "got signal approved", ""),
        ("charge", "", "done at attempt 1, begun again once",
         "asked twice with one key; charged once"),
        ("courier", "", "waited", ""),
        ("ship", "", "done at attempt 1", "asked once; shipped once"),
    ]  # fmt: skip


def test_a_step_that_was_ordered_and_had_not_begun_at_the_kill_is_asked_for_once() -> None:
    assert broken(judged(LINES[:4] + LINES[5:])) == []


@pytest.mark.parametrize(
    ("lines", "promises"),
    [
        ([*LINES, asked("fetch")], [FAIR]),
        ([*LINES, asked("ship")], [FAIR]),
        ([*LINES, asked("courier")], [FAIR]),
        ([*LINES, asked("charge")], [FAIR]),
        (LINES[:2] + LINES[3:4] + LINES[5:], [FAIR]),
        (LINES[1:], [FAIR]),
        (LINES[:5], [FAIR, ONCE, SHIPPED]),
        ([*LINES, did("ship")], [ONCE, SHIPPED]),
        ([*LINES, did("charge")], [ONCE, CHARGED]),
        ([*LINES[:4], asked("charge", "another"), *LINES[5:]], [ONCE, CHARGED]),
        ([*LINES[:3], *LINES[4:]], [ONCE, CHARGED]),
    ],
)
def test_what_was_asked_for_or_done_too_often_or_too_seldom_is_seen(
    lines: list[dict[str, Any]], promises: list[str]
) -> None:
    assert broken(judged(lines)) == promises


@pytest.mark.parametrize("charged", [[], [84.5, 84.5], [85.0]])
def test_a_card_charged_never_twice_or_wrongly_is_seen(charged: list[float]) -> None:
    assert broken(judged(), charged=charged) == [CHARGED]


def test_a_run_that_was_not_finished_is_seen() -> None:
    assert broken(judged(), status="failed") == [FINISHED]


def test_a_recorded_outcome_that_changed_or_went_is_seen() -> None:
    changed, other = now(), now()
    changed.nodes["fetch"].output = {"n": 2}
    other.nodes["check"].branches = ["ship"]
    for after in (changed, other):
        assert broken(judged(after=after)) == [KEPT]
    gone = now()
    del gone.nodes["check"]
    assert broken(judged(after=gone)) == [KEPT]


def test_a_skipped_node_must_not_have_been_asked_for() -> None:
    after = now()
    after.nodes["ship"].status = "skipped"
    assert broken(judged(after=after)) == [FAIR, ONCE, SHIPPED]


def test_what_was_under_way_at_a_kill_is_what_was_not_resolved() -> None:
    assert [kill.under_way for kill in KILLS] == [["approval"], ["charge"]]


def test_who_recorded_the_end_of_a_node_is_who_wrote_its_row() -> None:
    records = [
        {"do": "CreateTask", "node": "fetch", "status": "pending", "writer": "a"},
        {"do": "RetryTask", "node": "fetch", "writer": "a"},
        {"do": "CompleteTask", "node": "fetch", "writer": "b"},
        {"do": "CreateTask", "node": "check", "status": "completed", "writer": "b"},
        {"do": "CreateTask", "node": "approval", "status": "waiting", "writer": "b"},
        {"do": "ResolveWait", "node": "approval", "writer": "c"},
    ]
    names = {"a": "one", "b": "two"}
    assert writers_of(records, names) == {"fetch": "two", "check": "two", "approval": ""}
