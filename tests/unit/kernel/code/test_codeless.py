"""A run whose code is not run any more: only its end is decided, and all of it is recorded."""

from __future__ import annotations

import asyncio

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.signal import Signal
from perdure.flow.workflow import workflow
from perdure.kernel.run import GRACE
from perdure.model.errors import RunFinished
from tests.unit.kernel.code.board import Board

go = Signal("go", int)


@step
async def charge(amount: int) -> int:
    return amount


@workflow(max_duration="1h")
async def part(ctx: Context) -> int:
    return 1


@workflow(max_duration="1h")
async def order(ctx: Context) -> None:
    try:
        await asyncio.gather(
            charge(1), ctx.wait(go), ctx.sleep("1d"), ctx.child(part, id="p"),
            ctx.spawn(part, id="q"),
        )  # fmt: skip
    finally:
        await charge(2)


def given_up(board: Board) -> Board:
    assert board.machine.give_up("the code differs") == []
    return board


def test_all_that_is_open_is_given_up_and_children_that_are_waited_for_are_told() -> None:
    board = given_up(Board(order))
    board.cancel("enough")
    assert board.told() == [
        ("RequestStop", ""), ("ResolveWait", "wait:go"), ("ResolveWait", "sleep"),
        ("CancelChild", "part"), ("CancelTasks", ""), ("FinishRun", ""),
    ]  # fmt: skip
    assert board.open == {}
    end = board.end
    assert (end.status, end.failure and end.failure.kind) == ("canceled", "workflow.canceled")
    assert end.failure is not None
    assert end.failure.message.startswith("enough; ended without its code")
    assert end.failure.details == {"stalled": "the code differs"}
    with pytest.raises(RunFinished):
        board.cancel()


def test_the_deadline_ends_it_as_timed_out_when_it_has_come() -> None:
    from perdure.kernel.events import DeadlineReached

    board = given_up(Board(order))
    early = board.apply(DeadlineReached())
    assert early.ignored == "the run's deadline has not come yet"
    board.reach_deadline()
    assert board.end.status == "failed"
    assert board.end.failure is not None
    assert board.end.failure.kind == "workflow.timeout"
    again = board.apply(DeadlineReached())
    assert again.ignored == "the run is already failed"


def test_what_its_code_would_have_reacted_to_is_ignored_and_signals_are_kept() -> None:
    board = given_up(Board(order))
    for told in (
        board.complete("charge", 1), board.fire("sleep"), board.find("part"),
        board.end_child("part", 1),
    ):  # fmt: skip
        assert told.ignored is not None
    board.send("go", 7)
    assert board.told() == [("BufferSignal", "")]
    assert list(board.open) == ["charge", "wait:go", "sleep", "part", "part#2"]


def test_a_retry_with_its_code_goes_on_from_before_its_end() -> None:
    board = given_up(Board(order))
    board.send("go", 7)
    board.cancel("enough")
    board.retry()
    assert board.run.status == "running"
    assert "wait:go" not in board.open, "what was sent is taken now"
    assert {"charge", "sleep", "part", "part#2"} <= set(board.open)
    board.machine.close()


def test_one_that_was_cleaning_up_ends_for_its_first_reason() -> None:
    for end in ("cancel", "grace"):
        board = Board(order)
        board.cancel("first")
        given_up(board)
        board.fire(GRACE) if end == "grace" else board.cancel("second")
        assert board.end.status == "canceled"
        assert board.end.failure is not None
        assert board.end.failure.message.startswith("first; ended without its code")
        assert board.open == {}
