"""A retry of a run keeps what was decided before it failed, and decides the rest anew."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import json

from perdure import step
from perdure.flow.context import Context
from perdure.flow.signal import Channel, Signal
from perdure.flow.workflow import Workflow, workflow
from perdure.kernel.actions import CreateTask
from perdure.kernel.code.scopes import SCOPE
from perdure.kernel.events import RunRetried
from perdure.model.errors import InvalidRequest, RunActive
from tests.unit.kernel.code.board import Board


@step
async def charge(amount: int) -> int:
    return amount


@step
async def ship(order: str) -> str:
    return order


ok = Signal("ok", int)
news = Channel("news", int)


def named(function: Any) -> Workflow[Any, Any]:
    return workflow(max_duration="1h", name="order")(function)


@named
async def order(ctx: Context) -> list[Any]:
    first = await charge(1)
    second = await ship("a")
    return [first, second]


def test_what_failed_is_done_again_and_the_rest_is_kept() -> None:
    board = Board(order)
    board.complete("charge", 1)
    board.fail("ship")
    before = board.run.nodes["charge"]
    assert board.end.status == "failed"
    board.retry()
    assert board.pending == ["ship"]
    assert board.run.nodes["charge"] == before
    board.reload()
    board.complete("ship", "there")
    assert board.result == [1, "there"]


def test_from_a_call_on() -> None:
    board = Board(order)
    board.complete("charge", 1)
    board.complete("ship", "there")
    board.retry("charge")
    assert board.pending == ["charge"]
    board.complete("charge", 2)
    board.reload()
    board.complete("ship", "again")
    assert board.result == [2, "again"]


def test_a_call_that_was_not_made_is_refused_with_what_was_meant() -> None:
    board = Board(order)
    board.complete("charge", 1)
    board.fail("ship")
    with pytest.raises(InvalidRequest, match='no call shipp; did you mean "ship"'):
        board.retry("shipp")


def test_a_call_that_a_canceled_run_did_not_make_is_refused_too() -> None:
    board = Board(order)
    board.complete("charge", 1)
    board.cancel("oops")
    with pytest.raises(InvalidRequest, match='no call shipp; did you mean "ship"'):
        board.retry("shipp")
    board.retry("ship")
    assert board.pending == ["ship"]


def test_a_run_that_made_no_call_at_all_knows_none_to_suggest() -> None:
    @named
    async def nothing(ctx: Context) -> None:
        raise RuntimeError

    with pytest.raises(InvalidRequest, match=r"the run made no call ship$"):
        Board(nothing).retry("ship")


def test_a_run_that_has_not_ended_is_refused() -> None:
    board = Board(order)
    with pytest.raises(RunActive):
        board.apply(RunRetried())


def test_mended_code_goes_on_after_the_call_whose_outcome_broke_it() -> None:
    @named
    async def broken(ctx: Context) -> Any:
        first = await charge(1)
        raise ValueError(f"cannot use {first}")

    board = Board(broken)
    board.complete("charge", 1)
    assert board.end.status == "failed"
    board.retry(workflow=order)
    assert board.run.nodes["charge"].status == "completed"
    assert board.pending == ["ship"]
    board.reload()
    board.complete("ship", "there")
    assert board.result == [1, "there"]


def test_code_that_is_as_broken_as_before_fails_again() -> None:
    @named
    async def broken(ctx: Context) -> Any:
        raise ValueError(await charge(1))

    board = Board(broken)
    board.complete("charge", 1)
    board.retry()
    assert board.end.status == "failed"
    assert [name for name, _ in board.told()] == ["ReopenRun", "FinishRun"]


def test_calls_that_the_failure_gave_up_are_made_again() -> None:
    @named
    async def both(ctx: Context) -> list[int]:
        return list(await asyncio.gather(charge(1), charge(2), charge(3)))

    board = Board(both)
    board.complete("charge", 1)
    board.fail("charge#2")
    assert board.run.nodes["charge#3"].status == "canceled"
    board.retry()
    assert board.pending == ["charge#2", "charge#3"]
    board.complete("charge#3", 3)
    board.reload()
    board.complete("charge#2", 2)
    assert board.result == [1, 2, 3]


def test_signals_taken_after_the_point_are_kept_for_whoever_asks_then() -> None:
    @named
    async def waits(ctx: Context) -> list[int]:
        await charge(1)
        a = await ctx.wait(ok)
        b = await ctx.receive(news)
        await ship("a")
        return [a, b, await ctx.receive(news)]

    board = Board(waits)
    board.send("news", 7)
    board.complete("charge", 1)
    board.send("ok", 5)
    board.send("news", 8)
    board.fail("ship")
    board.retry("charge")
    assert sorted(kept.name for kept in board.run.signals) == ["news", "news", "ok"]
    board.complete("charge", 1)
    board.reload()
    board.complete("ship", "a")
    assert board.result == [5, 7, 8]


def test_a_canceled_run_goes_on_where_it_was_canceled() -> None:
    @named
    async def careful(ctx: Context) -> int:
        try:
            return await charge(1)
        finally:
            await ship("cleanup")

    board = Board(careful)
    board.cancel("oops")
    board.complete("ship", "x")
    assert board.end.status == "canceled"
    board.retry()
    assert board.pending == ["charge"]
    board.reload()
    board.complete("charge", 4)
    board.complete("ship", "x")
    assert board.result == 4


def test_a_canceled_run_does_not_go_back_to_a_failure_that_its_code_had_caught() -> None:
    @named
    async def caught(ctx: Context) -> list[Any]:
        try:
            await ship("by train")
        except Exception:
            await note("by bus")
        paid = await charge(1)
        return [paid, await ctx.wait(ok)]

    board = Board(caught)
    board.fail("ship")
    board.complete("note")
    board.complete("charge", 1)
    board.cancel("oops")
    board.retry()
    assert board.waiting == ["wait:ok"], "paid is paid"
    board.send("ok", 5)
    assert board.result == [1, 5]


def test_twice() -> None:
    board = Board(order)
    board.complete("charge", 1)
    for _ in range(3):
        board.fail("ship")
        assert board.end.status == "failed"
        board.retry()
        board.reload()
    board.complete("ship", "at last")
    assert board.result == [1, "at last"]


def test_a_retry_begins_a_new_deadline_and_forgets_why_it_stopped() -> None:
    board = Board(order)
    board.reach_deadline()
    assert board.end.status == "failed"
    board.retry()
    assert board.run.stopping is None
    assert board.pending == ["charge"]


# ---------------------------------------------------------------------- what was taken back


@step
async def refund(amount: int) -> None: ...


@step
async def note(text: str) -> None: ...


@named
async def undone(ctx: Context) -> list[Any]:
    await note("begun")
    async with ctx.saga() as saga:
        first = await saga.run(charge, 1, undo=refund)
        second = await ship("a")
    return [first, second]


def refunded() -> Board:
    """A run that was paid and could not be shipped."""
    board = Board(undone)
    board.complete("note")
    board.complete("charge", 1)
    board.fail("ship")
    board.complete("refund")
    return board


def test_what_was_taken_back_is_done_again() -> None:
    board = refunded()
    assert board.end.status == "failed"
    board.retry()
    assert board.pending == ["charge"], "else it would be shipped and not be paid"
    board.reload()
    board.complete("charge", 2)
    board.complete("ship", "there")
    assert board.result == [2, "there"]


def test_what_was_taken_back_after_a_cancel_is_done_again() -> None:
    board = Board(undone)
    board.complete("note")
    board.complete("charge", 1)
    board.cancel()
    board.complete("refund")
    assert board.end.status == "canceled"
    board.retry()
    assert board.pending == ["charge"]


def test_a_retry_may_fail_and_be_taken_back_once_more() -> None:
    board = Board(undone)
    board.complete("note")
    for number in (1, 2):
        board.complete("charge", number)
        board.reload()
        board.fail("ship")
        board.complete("refund")
        board.retry()
        assert board.pending == ["charge"]
    board.complete("charge", 3)
    board.complete("ship", "there")
    assert board.result == [3, "there"]


def test_a_call_after_what_was_taken_back_is_no_place_to_go_on_from() -> None:
    board = refunded()
    with pytest.raises(
        InvalidRequest, match="what charge did was taken back after ship was called"
    ):
        board.retry("ship")
    board.retry("note")
    assert board.pending == ["note"]


@named
async def otherwise(ctx: Context) -> list[Any]:
    try:
        async with ctx.saga() as saga:
            saga.undo(refund, 1)
            await charge(1)
            await ship("by train")
    except Exception:
        await ship("by bus")
    return [await charge(2)]


def test_what_the_code_knows_was_taken_back_stays_so() -> None:
    board = Board(otherwise)
    board.complete("charge", 1)
    board.fail("ship")
    board.complete("refund")
    board.complete("ship#2", "there")
    board.fail("charge#2")
    board.retry()
    assert board.pending == ["charge#2"], "the code went another way, and goes on there"
    board.complete("charge#2", 2)
    assert board.result == [2]


@named
async def nested(ctx: Context) -> None:
    async with ctx.saga() as outer:
        await note("outer")
        await outer.run(charge, 1, undo=refund)
        async with ctx.saga() as inner:
            await asyncio.gather(
                inner.run(charge, 2, undo=refund), inner.run(charge, 3, undo=refund)
            )
            await ship("a")


def test_scopes_within_scopes_are_all_made_again() -> None:
    board = Board(nested)
    board.complete("note")
    for node in ("charge", "charge#3", "charge#2"):
        board.complete(node, 1)
    board.fail("ship")
    for node in ("refund", "refund#2", "refund#3"):
        board.complete(node)
    board.retry()
    assert board.pending == ["charge"]


@named
async def registered(ctx: Context) -> None:
    async with ctx.saga() as saga:
        await note("anything")
        await charge(1)
        saga.undo(refund, 1)
        await ship("a")


def test_where_nobody_says_what_an_undo_is_of_it_may_be_of_the_first_call() -> None:
    board = Board(registered)
    board.complete("note")
    board.complete("charge", 1)
    board.fail("ship")
    board.complete("refund")
    board.retry()
    assert board.pending == ["note"]


@named
async def before(ctx: Context) -> list[Any]:
    first = await charge(1)
    async with ctx.saga() as saga:
        saga.undo(refund, first)
        return [first, await ship("a")]


def test_what_was_done_before_the_saga_that_took_it_back_is_asked_for() -> None:
    board = Board(before)
    board.complete("charge", 1)
    board.fail("ship")
    board.complete("refund")
    with pytest.raises(InvalidRequest, match="refund took back what may have been done before"):
        board.retry()
    board.retry("charge")
    assert board.pending == ["charge"]
    board.complete("charge", 2)
    board.reload()
    board.complete("ship", "there")
    assert board.result == [2, "there"]


def test_nothing_was_done_before_a_saga_that_comes_first() -> None:
    @named
    async def first(ctx: Context) -> Any:
        async with ctx.saga() as saga:
            saga.undo(refund, 1)
            return [await charge(1), await ship("a")]

    board = Board(first)
    board.complete("charge", 1)
    board.fail("ship")
    board.complete("refund")
    board.retry()
    assert board.pending == ["charge"]


@named
async def at_once(ctx: Context) -> list[Any]:
    async with ctx.saga() as saga:
        await note("begun")
        return list(await asyncio.gather(charge(1), ship("a"), saga.run(charge, 2, undo=refund)))


def test_a_call_that_fails_while_others_are_taken_back_is_no_place_to_go_on_from() -> None:
    board = Board(at_once)
    board.complete("note")
    board.complete("charge#2", 2)
    board.fail("charge")
    board.fail("ship")
    board.complete("refund")
    board.retry()
    assert sorted(board.pending) == ["charge", "charge#2", "ship"], "no refund for the second time"


def test_a_call_that_a_retry_made_again_was_asked_for_before() -> None:
    @named
    async def beside(ctx: Context) -> list[Any]:
        async with ctx.saga() as saga:

            async def paid() -> int:
                amount = await charge(1)
                saga.undo(refund, amount)
                return amount

            return list(await asyncio.gather(ship("a"), paid(), charge(2)))

    board = Board(beside)
    paid = next(node for node in board.pending if input_of(board, node) == 1)
    other = next(node for node in board.pending if input_of(board, node) == 2)
    board.complete(paid, 1)
    board.fail(other)
    board.fail("refund")
    board.retry()
    assert sorted(board.pending) == ["refund", "ship"]
    board.fail("ship")
    board.complete("refund")
    board.retry()
    assert sorted(board.pending) == sorted(["ship", paid, other]), "what is refunded is not paid"


def input_of(board: Board, node: str) -> Any:
    task = board.run.nodes[node].task
    actions = [action for one in board.journal for action in one.actions]
    made = next(a for a in actions if isinstance(a, CreateTask) and a.task == task)
    assert made.input is not None
    return json.decode(made.input)


@named
async def two(ctx: Context) -> list[Any]:
    async with ctx.saga() as saga:
        first = await saga.run(charge, 1, undo=refund)
        second = await saga.run(charge, 2, undo=refund)
        return [first, second, await ship("a")]


def test_what_could_not_be_taken_back_is_done_again_only_where_somebody_says_so() -> None:
    board = Board(two)
    board.complete("charge", 1)
    board.complete("charge#2", 2)
    board.fail("ship")
    board.fail("refund")
    board.complete("refund#2")
    with pytest.raises(InvalidRequest, match="refund was to take something back and did not"):
        board.retry()
    board.retry("charge")
    assert board.pending == ["charge"]


def test_what_was_done_after_a_cancel_and_could_not_be_taken_back_is_not_done_again() -> None:
    board = Board(two)
    board.cancel("oops")
    board.complete("charge", 1)
    board.fail("refund")
    assert board.end.status == "canceled"
    with pytest.raises(InvalidRequest, match="refund was to take something back and did not"):
        board.retry()


def test_an_undo_of_which_nobody_knows_the_end_is_looked_at_first() -> None:
    board = Board(two)
    board.complete("charge", 1)
    board.complete("charge#2", 2)
    board.cancel("oops")
    board.fire("~grace")
    assert board.end.status == "canceled"
    with pytest.raises(InvalidRequest, match="refund was to take something back and did not"):
        board.retry()


def test_an_undo_that_failed_is_made_again_alone() -> None:
    board = Board(undone)
    board.complete("note")
    board.complete("charge", 1)
    board.fail("ship")
    board.fail("refund")
    board.retry()
    assert board.pending == ["refund"], "what failed last"
    assert board.journal[-1].actions[-2].undoes == "charge", "and says of what, as the first one"


def test_code_that_was_let_go_of_in_a_scope_leaves_none_behind() -> None:
    before = SCOPE.get()
    let_go = Board(nested)
    let_go.complete("note")
    let_go.complete("charge", 1)
    let_go.machine.close()
    board = Board(undone)
    board.complete("note")
    board.complete("charge", 1)
    board.machine.close()
    assert SCOPE.get() is before
