"""Signals are facts, channels carry messages, and whatever loses a wait leaves nothing behind."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.signal import After, Channel, On, Signal
from perdure.flow.workflow import workflow
from perdure.kernel.code.stuck import Stuck
from perdure.model.errors import InvalidRequest, NoCases
from tests.unit.kernel.code.board import NEW_YEAR, Board


class Approve(msgspec.Struct, tag=True):
    by: str


class Reject(msgspec.Struct, tag=True):
    why: str


decision = Signal("decision", Approve | Reject)
confirmed = Signal("confirmed", str)
quit_ = Signal("quit", str)
news = Channel("news", int)


@step
async def charge(amount: int) -> int:
    return amount


@pytest.mark.rule("W-31", "W-32")
def test_a_signal_sent_before_anybody_waits_is_not_lost() -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> str:
        await charge(1)
        return await ctx.wait(confirmed)

    board = Board(waits)
    board.send("confirmed", "Ann")  # scenarios 5, 47
    board.reload()
    board.complete("charge", 1)
    assert board.result == "Ann"
    assert board.run.signals == ()


@pytest.mark.rule("W-31")
def test_a_signal_is_a_fact_that_is_remembered() -> None:
    @workflow(max_duration=None)
    async def twice(ctx: Context) -> list[str]:
        first = await ctx.wait(confirmed)
        second = await ctx.wait(confirmed, timeout=1)
        third = await ctx.select(After(0, lambda: "time"), confirmed)
        return [first, second, third]

    board = Board(twice)
    board.reload()
    board.send("confirmed", "Ann")
    assert board.result == ["Ann", "Ann", "Ann"]
    assert "wait:confirmed#2" not in board.run.nodes


@pytest.mark.rule("W-31")
def test_a_wait_that_times_out_raises_and_the_signal_is_kept_for_the_next() -> None:
    @workflow(max_duration=None)
    async def patient(ctx: Context) -> list[str]:
        try:
            await ctx.wait(confirmed, timeout="72h")
        except TimeoutError:  # TimedOut is one
            await charge(1)
        return [await ctx.wait(confirmed)]

    board = Board(patient)
    assert board.run.nodes["wait:confirmed"].wake_at == NEW_YEAR + 72 * 3600 * 1_000_000
    board.reload()
    board.fire("wait:confirmed")
    board.send("confirmed", "late")  # scenarios 44, 48, 56
    board.reload()
    board.complete("charge", 1)
    assert board.result == ["late"]


def test_a_null_payload_is_a_value() -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> list[Any]:
        return [await ctx.wait(Signal("any", Any), timeout=5)]  # type: ignore[arg-type]

    board = Board(waits)
    board.send("any", None)  # scenario 45
    assert board.result == [None]


@pytest.mark.parametrize("value", [0, "", [], False, {}])
def test_falsy_values_are_values(value: Any) -> None:
    @workflow(max_duration=None)
    async def echo(ctx: Context, given: Any) -> list[Any]:
        return [given, await ctx.wait(Signal("any", Any))]  # type: ignore[arg-type]

    board = Board(echo, value)
    board.send("any", value)  # scenario 110
    assert board.result == [value, value]


def test_each_message_of_a_channel_is_received_once_in_order() -> None:
    @workflow(max_duration=None)
    async def reads(ctx: Context) -> list[int]:
        return [await ctx.receive(news) for _ in range(4)]

    board = Board(reads)
    for number in (1, 2):
        board.send("news", number)
        board.reload()
    assert board.waiting == ["receive:news#3"]
    board.send("news", 3)
    board.send("news", 4)
    assert board.result == [1, 2, 3, 4]


def test_keyed_mailboxes_are_apart() -> None:
    @workflow(max_duration=None)
    async def approvals(ctx: Context) -> list[str]:
        got = []
        for key in ("a", "b"):
            verdict = await ctx.wait(decision[key])
            got.append(verdict.by if isinstance(verdict, Approve) else verdict.why)
        return got

    board = Board(approvals)
    board.send("decision[b]", {"type": "Reject", "why": "no"})
    assert board.waiting == ["wait:decision"]
    board.send("decision[a]", {"type": "Approve", "by": "Ann"})
    assert board.result == ["Ann", "no"]


@pytest.mark.rule("W-33")
def test_select_takes_what_came_first_and_takes_the_other_waits_down() -> None:
    @workflow(max_duration=None)
    async def selects(ctx: Context) -> list[Any]:
        got = await ctx.select(quit_, On(news, lambda n: n * 10), After("30d"))
        return [got, await charge(1)]

    board = Board(selects)
    assert board.waiting == ["select.0", "select.1", "select.2"]
    board.reload()
    board.send("news", 4)
    assert board.waiting == []
    board.reload()
    board.complete("charge", 1)
    assert board.result == [40, 1]


@pytest.mark.rule("W-33")
def test_select_prefers_received_signals_in_case_order_then_due_times() -> None:
    @workflow(max_duration=None)
    async def selects(ctx: Context) -> list[Any]:
        await charge(1)
        got = []
        for _ in range(3):
            got.append(await ctx.select(After(0, lambda: "time"), news, quit_))
        return got

    board = Board(selects)
    board.send("quit", "stop")
    board.send("news", 7)
    board.reload()
    board.complete("charge", 1)
    assert board.result == [7, "stop", "stop"]


@pytest.mark.rule("W-33")
def test_select_without_cases_is_refused() -> None:
    @workflow(max_duration=None)
    async def selects(ctx: Context) -> str:
        try:
            await ctx.select()
        except NoCases:
            return "refused"
        return "?"

    assert Board(selects).result == "refused"


def test_a_payload_of_another_type_raises_where_it_is_awaited_and_names_the_field() -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> str:
        try:
            await ctx.wait(decision)
        except InvalidRequest as error:
            return str(error)
        return "?"

    board = Board(waits)
    board.send("decision", {"type": "Approve", "by": 5})
    assert "signal decision" in board.result
    assert "$.by" in board.result


@pytest.mark.rule("W-30")
def test_sleep_takes_a_duration_or_a_moment() -> None:
    @workflow(max_duration=None)
    async def sleeps(ctx: Context) -> None:
        await ctx.sleep("1h")
        await ctx.sleep(ctx.now() + timedelta(hours=1))
        await ctx.sleep(0)

    board = Board(sleeps)
    board.fire("sleep")
    assert board.run.nodes["sleep#2"].wake_at == NEW_YEAR + 2 * 3600 * 1_000_000
    board.reload()
    board.fire("sleep#2")
    assert board.end.status == "completed"


def test_signals_go_to_the_call_that_has_waited_longest() -> None:
    @workflow(max_duration=None)
    async def two(ctx: Context) -> list[int]:
        import asyncio

        return list(await asyncio.gather(ctx.receive(news), ctx.receive(news)))

    board = Board(two)
    board.send("news", 1)
    board.reload()
    board.send("news", 2)
    assert board.result == [1, 2]


def test_answers_from_memory_alone_end_in_a_stall() -> None:
    @workflow(max_duration=None)
    async def spins(ctx: Context) -> None:
        await ctx.wait(confirmed)
        while True:
            await ctx.wait(confirmed)

    board = Board(spins)
    with pytest.raises(Stuck, match="hot loop at line"):
        board.send("confirmed", "x")


def test_a_signal_sent_twice_with_one_id_counts_once() -> None:
    from msgspec import Raw

    from perdure.kernel.events import SignalReceived

    @workflow(max_duration=None)
    async def waits(ctx: Context) -> int:
        await charge(1)
        return await ctx.receive(news) + await ctx.receive(news, timeout=5)

    board = Board(waits)
    board.apply(SignalReceived("news", "same", Raw(b"1")))
    again = board.apply(SignalReceived("news", "same", Raw(b"1")))
    assert again.ignored is not None  # scenario 267
