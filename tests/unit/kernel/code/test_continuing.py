"""continue_as_new: the same run from a new beginning; nothing sent to it is lost."""

from __future__ import annotations

import msgspec
import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.signal import Channel
from perdure.flow.workflow import workflow
from perdure.kernel.actions import Continued
from perdure.kernel.code.script import since_continued
from perdure.kernel.code.stuck import Stuck
from perdure.kernel.fold import fold
from tests.unit.kernel.code.board import Board

news = Channel("news", int)


@step
async def bill(period: int) -> int:
    return period


@workflow(max_duration="1h")
async def subscription(ctx: Context, period: int) -> str:
    await bill(period)
    if period < 3:
        await ctx.sleep("10m")
        ctx.continue_as_new(period + 1)
    return f"over after {await ctx.receive(news)}"


def test_the_run_goes_on_with_the_new_input_and_forgets_what_it_did() -> None:
    board = Board(subscription, 1)
    first_deadline = board.run.deadline
    board.complete("bill", 1)
    board.send("news", 7)
    board.fire("sleep")
    assert list(board.run.nodes) == ["bill"]
    assert bytes(board.run.input or b"") == b"2"
    assert [kept.name for kept in board.run.signals] == ["news"]  # scenario 51
    assert first_deadline is not None
    assert board.run.deadline == first_deadline + 600 * 1_000_000
    board.reload()
    board.complete("bill", 2)
    board.reload()
    board.fire("sleep")
    board.reload()
    board.complete("bill", 3)
    assert board.result == "over after 7"


def test_a_journal_is_read_from_the_last_beginning() -> None:
    board = Board(subscription, 1)
    board.complete("bill", 1)
    board.fire("sleep")
    beginning = next(
        place
        for place, transition in enumerate(board.journal)
        if any(isinstance(action, Continued) for action in transition.actions)
    )
    short = [since_continued(board.journal[beginning]), *board.journal[beginning + 1 :]]
    assert msgspec.json.encode(fold(short)) == msgspec.json.encode(board.run)
    board.machine.close()
    board.journal = short
    board.reload()
    board.complete("bill", 2)
    assert board.waiting == ["sleep"]


def test_going_on_as_new_without_ever_waiting_stalls() -> None:
    @workflow(max_duration=None)
    async def spins(ctx: Context) -> None:
        ctx.continue_as_new()

    with pytest.raises(Stuck, match="hot loop through continue_as_new"):
        Board(spins)


def test_a_cancel_wins() -> None:
    @workflow(max_duration=None)
    async def clings(ctx: Context) -> None:
        try:
            await ctx.sleep(5)
        finally:
            ctx.continue_as_new()

    board = Board(clings)
    board.cancel()
    assert board.end.status == "canceled"
