"""Replay: the code must ask for what it asked for, and says exactly where it does not."""

from __future__ import annotations

import asyncio
import gc
from contextlib import suppress
from typing import Any

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.signal import Signal
from perdure.flow.workflow import Workflow, workflow
from perdure.kernel.code.stuck import Stuck
from perdure.model.errors import NonDeterminism
from tests.unit.kernel.code.board import Board


@step
async def charge(amount: int) -> int:
    return amount


@step
async def ship(order: str) -> str:
    return order


ok = Signal("ok", int)


def named(function: Any) -> Workflow[Any, Any]:
    return workflow(max_duration=None, name="order")(function)


@named
async def first(ctx: Context) -> int:
    await charge(1)
    await ship("a")
    return await charge(2)


def test_replayed_code_goes_on_where_its_journal_ends() -> None:
    board = Board(first)
    board.complete("charge", 1)
    board.reload()
    assert board.pending == ["ship"]
    board.complete("ship", "a")
    board.reload()
    board.complete("charge#2", 7)
    assert board.result == 7


def refused(board: Board, other: Workflow[Any, Any]) -> str:
    before = len(board.journal)
    with pytest.raises(Stuck) as stuck:
        board.reload(other)
    assert isinstance(stuck.value.cause, NonDeterminism)
    assert len(board.journal) == before
    board.reload(first)  # the code that still does this goes on
    return str(stuck.value)


def test_another_input_is_told_with_both_sides() -> None:
    @named
    async def other(ctx: Context) -> None:
        await charge(5)

    told = refused(Board(first), other)
    assert "charge(1) is recorded, and now it asks for charge(5)" in told
    assert "at transition 2 of the journal" in told
    assert "ctx.patched()" in told


def test_another_step_is_told() -> None:
    @named
    async def other(ctx: Context) -> None:
        await ship("a")

    assert "charge(1) is recorded, and now it asks for step ship" in refused(Board(first), other)


def test_a_step_less_is_told() -> None:
    @named
    async def other(ctx: Context) -> None:
        await charge(1)
        await ctx.sleep(1)

    board = Board(first)
    board.complete("charge", 1)
    assert 'ship("a") is recorded' in refused(board, other)


def test_an_earlier_end_is_told() -> None:
    @named
    async def other(ctx: Context) -> None:
        await charge(1)

    board = Board(first)
    board.complete("charge", 1)
    assert "its function ended" in refused(board, other)


def test_a_wait_for_another_signal_is_told() -> None:
    @named
    async def waits(ctx: Context) -> int:
        return await ctx.wait(ok)

    @named
    async def other(ctx: Context) -> int:
        return await ctx.wait(Signal("no", int))

    board = Board(waits)
    with pytest.raises(Stuck, match="wait:ok is recorded, and now it asks for wait:no"):
        board.reload(other)


def test_code_cannot_swallow_that_it_differs() -> None:
    @named
    async def other(ctx: Context) -> str:
        try:
            await charge(5)
        except Exception:
            return "swallowed"
        return "never"

    refused(Board(first), other)


def test_a_changed_delay_is_no_difference_and_the_recorded_time_counts() -> None:
    @named
    async def short(ctx: Context) -> None:
        await ctx.sleep(10)

    @named
    async def long(ctx: Context) -> None:
        await ctx.sleep(1000)

    board = Board(short)
    board.reload(long)
    due = board.run.nodes["sleep"].wake_at
    board.fire("sleep")
    assert board.now == due
    assert board.end.status == "completed"


def test_large_inputs_are_compared_by_a_digest() -> None:
    @named
    async def large(ctx: Context) -> str:
        return await ship("x" * 2000)

    @named
    async def other(ctx: Context) -> str:
        return await ship("x" * 1999 + "y")

    board = Board(large)
    board.reload()
    with pytest.raises(Stuck, match="ship"):
        board.reload(other)


def test_time_ids_and_chance_are_the_same_on_replay() -> None:
    @named
    async def draws(ctx: Context) -> list[Any]:
        before = [str(ctx.uuid()), ctx.random.random(), ctx.now().isoformat()]
        await charge(1)
        return [*before, str(ctx.uuid()), ctx.random.random(), ctx.now().isoformat()]

    def drawn(reload: bool) -> list[Any]:
        board = Board(draws)
        board.now += 5_000_000
        if reload:
            board.reload()
        board.complete("charge", 1)
        result: list[Any] = board.result
        return result

    assert drawn(reload=True) == drawn(reload=False)
    assert len(set(map(str, drawn(reload=True)))) == 6


def test_a_guarded_change_is_taken_by_runs_that_get_there_first() -> None:
    @named
    async def old(ctx: Context) -> int:
        await charge(1)
        return await charge(2)

    @named
    async def new(ctx: Context) -> int:
        if ctx.patched("ship-first"):
            await ship("a")
        await charge(1)
        return await charge(2)

    passed = Board(old)
    passed.reload(new)
    passed.complete("charge", 1)
    passed.reload(new)
    passed.complete("charge#2", 2)
    assert passed.result == 2

    fresh = Board(new)
    assert fresh.pending == ["ship"]
    fresh.reload()
    fresh.complete("ship", "a")
    fresh.reload()
    assert fresh.pending == ["charge"]


def test_what_code_sees_is_what_was_recorded_also_on_the_first_run() -> None:
    @step
    async def pair() -> tuple[int, int]:
        return (1, 2)

    @named
    async def sees(ctx: Context) -> list[str]:
        once = await pair()
        return [type(once).__name__, str(once)]

    board = Board(sees)
    board.complete("pair", [1, 2])
    assert board.result == ["tuple", "(1, 2)"]  # scenario 15


def test_an_evicted_copy_of_the_code_asks_for_nothing_more() -> None:
    asked: list[str] = []

    @named
    async def cleans_up(ctx: Context) -> None:
        try:
            await charge(1)
        finally:
            asked.append("finally")
            try:
                await ship("cleanup")
            except Exception:
                asked.append("swallowed")
            finally:
                asked.append("out")

    board = Board(cleans_up)
    board.machine.close()
    assert asked == ["finally", "out"]
    assert board.told() == [("BeginRun", ""), ("CreateTask", "charge"), ("DispatchTask", "charge")]


def test_code_that_will_not_go_is_told_of() -> None:
    @named
    async def clings(ctx: Context) -> None:
        while True:
            with suppress(BaseException):
                await asyncio.get_running_loop().create_future()

    board = Board(clings)
    (said,) = board.machine.close()
    assert said.startswith("main: ")


@pytest.mark.rule("W-53")
def test_code_that_catches_everything_asks_in_vain_once_it_was_let_go_of() -> None:
    # scenario 116: whatever it does then reaches nobody, and the engine is not held up
    asked: list[str] = []

    @named
    async def deaf(ctx: Context) -> None:
        while True:
            asked.append("again")
            with suppress(BaseException):
                await charge(1)
            with suppress(BaseException):
                await ctx.wait(ok)
            with suppress(BaseException):
                await asyncio.sleep(5)
            with suppress(BaseException):
                await asyncio.create_task(ctx.sleep(1))

    board = Board(deaf)
    before = len(board.journal)
    assert asked == ["again"]
    (said,) = board.machine.close()
    assert "main" in said
    del board.machine
    gc.collect()
    assert len(board.journal) == before
    assert set(board.open) == {"charge"}


@pytest.mark.filterwarnings("error")
def test_code_that_is_let_go_of_while_it_would_clean_up_side_by_side_says_nothing() -> None:
    @named
    async def cleans(ctx: Context) -> None:
        try:
            try:
                await charge(1)
            finally:
                await asyncio.gather(charge(2), charge(3))
        finally:
            async with asyncio.TaskGroup() as group:
                group.create_task(ctx.sleep(1))
                group.create_task(charge(4))

    board = Board(cleans)
    assert board.machine.close() == []
    gc.collect()
    assert set(board.open) == {"charge"}


def test_code_that_raises_while_it_is_let_go_of_is_let_go_of() -> None:
    @named
    async def breaks(ctx: Context) -> None:
        try:
            await charge(1)
        finally:
            raise ValueError("on the way out")

    assert Board(breaks).machine.close() == []
