"""The account of the trip: held when each booking was canceled once, in order, and broken else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from perdure.cli.demo.account import Kill
from perdure.cli.demo.reversal import Rollback, found
from perdure.cli.node_view import NodeView
from perdure.cli.nodes import NodeBook

CANCELED = [("car", 1), ("hotel", 2), ("flight", 1)]
FAILURE = {"do": "FinishRun", "failure": {"message": "the card is declined"}}


def told(
    canceled: list[tuple[str, int]] = CANCELED,
    *,
    did: list[str] | None = None,
    status: str = "failed",
    under_way: str = "hotel~undo",
    finish: dict[str, Any] = FAILURE,
) -> Rollback:
    lines = [{"did": "booked", "thing": step} for step in ("flight", "hotel", "car")]
    lines += [
        {"asked": "canceled", "thing": step} for step, number in canceled for _ in range(number)
    ]
    done = [step for step, _ in canceled] if did is None else did
    lines += [{"did": "canceled", "thing": step} for step in done]
    book = NodeBook()
    book.nodes = {step: NodeView(step, "compensated") for step, _ in CANCELED}
    then = NodeBook()
    then.nodes = {under_way: NodeView(under_way, "pending")}
    ends = {"do": "CompleteTask", "node": "hotel~undo", "writer": "w"}
    journal: Any = SimpleNamespace(
        records=[ends, finish], names={"w": "seven"}, book=book, status=status
    )
    return found(journal, Kill("six", 1, then, "seven", 0.1), lines)


def held(rollback: Rollback) -> list[bool]:
    return [check.held for check in rollback.checks]


def test_each_booking_is_told_with_who_undid_it_and_what_its_agency_saw() -> None:
    rollback = told()
    assert held(rollback) == [True, True, True]
    hotel = rollback.steps[1]
    assert (hotel.step, hotel.by, hotel.status) == ("hotel", "seven", "compensated")
    assert hotel.others == "booked once; asked to cancel twice, canceled once"


@pytest.mark.parametrize(
    ("case", "broken"),
    [
        ({"status": "completed"}, 0),
        ({"finish": {"do": "FinishRun", "failure": {"message": "something else"}}}, 0),
        ({"did": ["hotel", "car", "flight"]}, 1),
        ({"did": ["car", "hotel", "hotel", "flight"]}, 1),
        ({"did": ["car", "hotel"]}, 1),
        ({"under_way": "flight~undo"}, 2),
        ({"canceled": [("car", 1), ("hotel", 3), ("flight", 1)]}, 2),
    ],
)
def test_what_did_not_hold_is_said(case: dict[str, Any], broken: int) -> None:
    assert held(told(**case)) == [at != broken for at in range(3)]
