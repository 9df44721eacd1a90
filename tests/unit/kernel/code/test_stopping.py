"""A cancel or the deadline is one CancelledError, a while to clean up, and an end that sticks."""

from __future__ import annotations

import asyncio

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.workflow import workflow
from perdure.kernel.run import GRACE
from perdure.model.errors import RunFinished, StepFailed
from tests.unit.kernel.code.board import Board


@step(retry=3)
async def charge(amount: int) -> int:
    return amount


@step
async def refund(amount: int) -> int:
    return amount


@step
async def ship(amount: int) -> int:
    return amount


@workflow(max_duration="1h")
async def order(ctx: Context) -> str:
    try:
        await charge(1)
    finally:
        await refund(1)
    return "shipped"


def test_a_cancel_lets_the_code_clean_up_and_the_run_ends_canceled() -> None:
    board = Board(order)
    board.cancel("enough")
    assert board.told()[:4] == [
        ("RequestStop", ""), ("CancelTasks", ""), ("CreateTask", "refund"),
        ("DispatchTask", "refund"),
    ]  # fmt: skip
    board.reload()
    board.complete("refund", 1)
    assert board.end.status == "canceled"
    assert board.end.failure is not None
    assert board.end.failure.message == "enough"
    assert board.open == {}


def test_the_deadline_does_the_same_and_the_run_fails_timed_out() -> None:
    board = Board(order)
    board.reach_deadline()
    board.reload()
    board.complete("refund", 1)
    assert board.end.status == "failed"
    assert board.end.failure is not None
    assert board.end.failure.kind == "workflow.timeout"


def test_code_that_returns_all_the_same_does_not_change_the_end() -> None:
    @workflow(max_duration=None)
    async def stubborn(ctx: Context) -> str:
        try:
            await charge(1)
        except asyncio.CancelledError:
            assert ctx.canceled
        return "I went on"

    board = Board(stubborn)
    board.cancel()
    assert board.end.status == "canceled"  # scenarios 23, 29


def test_cleaning_up_is_bounded() -> None:
    board = Board(order)
    board.cancel()
    board.reload()
    board.fire(GRACE)
    assert board.end.status == "canceled"
    assert board.run.nodes["refund"].status == "canceled"
    assert board.open == {}


def test_a_second_cancel_changes_nothing() -> None:
    board = Board(order)
    board.cancel("first")
    again = board.cancel("second")
    assert again.ignored == "the run is stopping already: first"  # scenario 25
    board.complete("refund", 1)
    assert board.end.failure is not None
    assert board.end.failure.message == "first"
    with pytest.raises(RunFinished):
        board.cancel("third")


def test_a_step_that_ended_before_the_cancel_keeps_its_outcome() -> None:
    @workflow(max_duration=None)
    async def two(ctx: Context) -> int:
        return await charge(1) + await ship(2)

    board = Board(two)
    board.complete("charge", 1)
    board.cancel()
    assert board.run.nodes["charge"].status == "completed"  # scenario 33
    assert board.run.nodes["ship"].status == "canceled"


def test_while_stopping_what_cleans_up_is_tried_again_by_its_policy() -> None:
    @workflow(max_duration=None)
    async def cleans(ctx: Context) -> None:
        try:
            await ship(1)
        finally:
            await charge(1)

    board = Board(cleans)
    board.cancel()
    board.fail("charge")
    assert board.told() == [("RetryTask", "charge")]
    board.reload()
    board.fail("charge")
    board.fail("charge")
    assert board.run.nodes["charge"].status == "failed"
    assert board.end.status == "canceled"


def test_while_stopping_what_was_under_way_is_not_tried_again() -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> None:
        async with ctx.saga() as saga:
            await saga.run(charge, 1, undo=refund)

    board = Board(waits)
    board.cancel()
    board.reload()
    board.fail("charge")
    assert board.run.nodes["charge"].status == "failed"
    assert board.end.status == "canceled"


def test_a_run_that_has_not_begun_ends_at_once() -> None:
    board = Board(order, begin=False)
    board.cancel("never mind")
    assert board.told() == [("RequestStop", ""), ("FinishRun", "")]


def test_a_late_report_on_a_finished_run_is_ignored() -> None:
    board = Board(order)
    task = board.run.nodes["charge"].task
    board.cancel()
    from msgspec import Raw

    from perdure.kernel.events import NodeCompleted

    late = board.apply(NodeCompleted(task, "charge", 0, Raw(b"1")))
    assert late.ignored is not None
    assert "already canceled" in late.ignored


@workflow(max_duration=None)
async def trip(ctx: Context) -> str:
    async with ctx.saga() as saga:
        await saga.run(charge, 1, undo=refund)
        saga.undo(refund, 99)
        await ship(5)
    return "gone"


def test_a_saga_undoes_in_reverse_order_when_it_fails() -> None:
    board = Board(trip)
    board.complete("charge", 11)
    board.reload()
    board.fail("ship", permanent=True)
    assert board.pending == ["refund"]
    board.reload()
    board.complete("refund", 1)
    assert board.pending == ["refund#2"]
    board.reload()
    board.complete("refund#2", 1)
    assert board.end.status == "failed"
    assert board.end.failure is not None
    assert board.end.failure.message == "no"


def test_a_saga_undoes_nothing_when_it_succeeds() -> None:
    board = Board(trip)
    board.complete("charge", 11)
    board.complete("ship", 1)
    assert board.result == "gone"


def test_a_saga_waits_for_the_step_in_flight_before_it_undoes() -> None:
    board = Board(trip)
    board.cancel()
    assert board.pending == ["charge"]
    board.reload()
    board.complete("charge", 42)
    assert board.pending == ["refund"]
    created = [a for a in board.journal[-1].actions if getattr(a, "node", "") == "refund"]
    assert bytes(created[0].input) == b"42"
    board.complete("refund", 1)
    assert board.end.status == "canceled"


def test_an_undo_that_fails_does_not_stop_the_others() -> None:
    board = Board(trip)
    board.complete("charge", 11)
    board.fail("ship", permanent=True)
    board.fail("refund", permanent=True)
    assert board.pending == ["refund#2"]
    board.complete("refund#2", 1)
    assert board.end.failure is not None
    assert board.end.failure.message == "no"


@step(retry=3)
async def give_back(amount: int) -> int:
    return amount


@workflow(max_duration="1h")
async def gifts(ctx: Context) -> str:
    async with ctx.saga() as saga:
        await saga.run(charge, 1, undo=give_back)
        await saga.run(ship, 5, undo=refund)
        await ship(6)
    return "given"


@pytest.mark.parametrize("stop", ["cancel", "reach_deadline"])
def test_a_cancel_while_a_saga_is_undone_stops_no_undo(stop: str) -> None:
    board = Board(gifts)
    board.complete("charge", 11)
    board.complete("ship", 12)
    board.fail("ship#2", permanent=True)
    assert board.pending == ["refund"]
    getattr(board, stop)()
    assert board.pending == ["refund"]
    board.reload()
    board.complete("refund", 1)
    assert board.pending == ["give-back"]
    board.fail("give-back")
    board.reload()
    board.fail("give-back")
    board.complete("give-back", 1)
    assert board.end.status == ("canceled" if stop == "cancel" else "failed")
    assert board.end.failure is not None
    assert board.end.failure.kind != "Boom"


def test_a_saga_waits_for_its_step_however_often_it_is_cancelled() -> None:
    @workflow(max_duration=None)
    async def hurried(ctx: Context) -> None:
        async with asyncio.timeout(5), ctx.saga() as saga:
            await saga.run(charge, 1, undo=refund)

    board = Board(hurried)
    board.fire("timer")
    board.reload()
    board.cancel()
    board.reload()
    assert board.pending == ["charge"]
    board.complete("charge", 42)
    assert board.pending == ["refund"]
    board.complete("refund", 1)
    assert board.end.status == "canceled"


def test_an_undo_that_cannot_even_be_called_does_not_stop_the_others() -> None:
    @workflow(max_duration=None)
    async def mistaken(ctx: Context) -> None:
        async with ctx.saga() as saga:
            saga.undo(refund, 1)
            saga.undo(refund, 1, 2, 3)  # type: ignore[call-arg]
            raise ValueError("no")

    board = Board(mistaken)
    assert board.pending == ["refund#2"]
    board.complete("refund#2", 1)
    assert board.end.failure is not None
    assert board.end.failure.message == "no"


def test_going_on_as_new_out_of_a_saga_undoes_nothing() -> None:
    @workflow(max_duration=None)
    async def again(ctx: Context, round: int) -> int:
        async with ctx.saga() as saga:
            await saga.run(charge, round, undo=refund)
            if round < 2:
                ctx.continue_as_new(round + 1)
        return round

    board = Board(again, 1)
    board.complete("charge", 1)
    board.reload()
    board.complete("charge", 1)
    assert board.result == 2


def test_a_failed_step_is_tried_again_and_then_raised() -> None:
    @workflow(max_duration=None)
    async def tries(ctx: Context) -> list[object]:
        try:
            await charge(1)
        except StepFailed as failed:
            return [failed.kind, failed.message, failed.step, failed.attempt]
        return []

    board = Board(tries)
    board.fail("charge", "one")
    assert board.told() == [("RetryTask", "charge")]
    board.reload()
    board.fail("charge", "two")
    board.fail("charge", "three")
    assert board.result == ["Boom", "three", "charge", 3]
