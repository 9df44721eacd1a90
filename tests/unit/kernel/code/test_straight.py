"""What the machine decides in place, and what it must leave to the general way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context as Variables
from types import coroutine
from typing import Any

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.workflow import workflow
from perdure.kernel.actions import CompleteTask, CreateTask, DispatchTask
from perdure.kernel.code import machine
from perdure.kernel.code.calls import digest_of
from perdure.kernel.code.stuck import Stuck
from perdure.kernel.events import NodeCompleted
from perdure.kernel.onward import Onward
from tests.unit.kernel.code.board import Board, text


@step(retry=2)
async def charge(amount: int) -> int:
    return amount


@step
async def send(amount: int) -> int:
    return amount


@step(queue="mail", retry=3)
async def note(text: str) -> None:
    return None


@coroutine
def awaited(future: Any) -> Generator[Any, Any, Any]:
    """What a task waits for, handed to it by hand."""
    future._asyncio_future_blocking = True
    return (yield future)


def rest_of(call: Coroutine[Any, Any, int]) -> int:
    """The outcome of a call that was begun by hand."""
    with pytest.raises(StopIteration) as stop:
        call.send(None)
    value: int = stop.value.value
    return value


@pytest.fixture
def generally(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The events that were not decided in place."""
    left: list[Any] = []
    general = machine.decide_generally

    def watched(decider: Any, event: Any) -> Any:
        left.append(event)
        return general(decider, event)

    monkeypatch.setattr(machine, "decide_generally", watched)
    return left


def test_the_report_of_a_first_attempt_is_decided_in_place(generally: list[Any]) -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> int:
        return await charge(1) + await send(2)

    board = Board(orders)
    generally.clear()
    made = board.complete("charge", 5)
    assert [type(action).__name__ for action in made.actions] == [
        "CompleteTask", "CreateTask", "DispatchTask",
    ]  # fmt: skip
    board.complete("send", 6)
    assert (generally, board.end.output) == ([], text(11))


async def alone(ctx: Context) -> None:
    await send(2)


async def with_another(ctx: Context) -> None:
    await asyncio.gather(send(2), send(3))


async def with_a_timeout(ctx: Context) -> None:
    await asyncio.wait_for(send(2), 60)


async def given_up(ctx: Context) -> None:
    task = asyncio.ensure_future(send(2))
    await asyncio.sleep(0)
    task.cancel()
    await ctx.sleep(60)


async def behind_a_guard(ctx: Context) -> None:
    assert ctx.patched("new")
    await send(2)


async def before_a_wait(ctx: Context) -> None:
    task = asyncio.ensure_future(send(2))
    await ctx.sleep(60)
    await task


async def ends(ctx: Context) -> None:
    task = asyncio.ensure_future(send(2))
    await asyncio.sleep(0)
    task.remove_done_callback(print)


@pytest.mark.parametrize(
    ("code", "recorded"),
    [
        (alone, "CreateTask DispatchTask"),
        (with_another, "CreateTask DispatchTask CreateTask DispatchTask"),
        (with_a_timeout, "CreateTask DispatchTask CreateTask"),
        (given_up, "CreateTask DispatchTask CancelTasks CreateTask"),
        (behind_a_guard, "Patched CreateTask DispatchTask"),
        (before_a_wait, "CreateTask CreateTask DispatchTask"),
        (ends, "CreateTask DispatchTask CancelTasks FinishRun"),
    ],
)
def test_a_step_that_only_another_follows_is_one_record(code: Any, recorded: str) -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> None:
        await charge(1)
        await code(ctx)

    board = Board(orders)
    made = board.complete("charge", 5)
    assert (type(board.journal[-1]) is Onward) is (code is alone)
    kinds = [type(action).__name__ for action in made.actions]
    assert " ".join(kinds) == f"CompleteTask {recorded}"


def test_what_is_recorded_of_a_step_as_one_record_is_all_that_its_actions_say() -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> None:
        await charge(1)
        await note("x" * 2000)

    board = Board(orders)
    made = board.complete("charge", 5)
    created, dispatched = made.actions[1:]
    assert isinstance(created, CreateTask)
    assert created.input == text("x" * 2000)
    assert (created.digest, created.undoes) == (digest_of(created.input), None)
    assert isinstance(dispatched, DispatchTask)
    assert (dispatched.queue, dispatched.attempts, dispatched.attempt) == ("mail", 3, 0)
    board.reload()
    assert board.pending == ["note"]


def test_the_report_of_a_second_attempt_is_decided_generally(generally: list[Any]) -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> int:
        return await charge(1)

    board = Board(orders)
    board.fail("charge")
    generally.clear()
    stale = NodeCompleted(board.run.nodes["charge"].task, "charge", 0, text(4))
    assert board.apply(stale).ignored == (
        "node charge is at attempt 2: the report of attempt 1 is stale"
    )
    board.complete("charge", 5)
    assert (len(generally), board.end.output) == (2, text(5))


def test_a_second_attempt_that_is_given_up_is_recorded_as_given_up() -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> str:
        try:
            return str(await asyncio.wait_for(charge(1), 60))
        except TimeoutError:
            return "late"

    board = Board(orders)
    board.fail("charge")
    board.fire("timer")
    assert (board.run.nodes["charge"].status, board.end.output) == ("canceled", text("late"))


def test_a_call_that_no_task_awaits_yet_has_its_outcome_later() -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> list[int]:
        call = charge(1)
        call.send(None)
        return [await send(2), rest_of(call)]

    board = Board(orders)
    made = board.complete("charge", 5)
    assert [type(action) for action in made.actions] == [CompleteTask]
    board.complete("send", 6)
    assert board.end.output == text([6, 5])


def test_whoever_waits_beside_the_task_is_told_in_order() -> None:
    heard: list[str] = []

    @workflow(max_duration=None)
    async def orders(ctx: Context) -> int:
        call = charge(1)
        future: Any = call.send(None)
        future.add_done_callback(lambda _: heard.append("before"), context=Variables())
        await awaited(future)
        heard.append("task")
        return rest_of(call)

    board = Board(orders)
    board.complete("charge", 5)
    assert (heard, board.end.output) == (["before", "task"], text(5))


def endless() -> None:
    loop = asyncio.get_running_loop()
    loop.call_soon(endless)


def ends_process() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(("does", "raised"), [(endless, Stuck), (ends_process, KeyboardInterrupt)])
def test_a_turn_that_breaks_off_records_nothing_and_nothing_comes_after(
    does: Callable[[], None], raised: type[BaseException]
) -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> None:
        async def aside() -> None:
            await charge(1)
            does()

        task = asyncio.ensure_future(aside())
        await send(2)
        await send(3)
        await task

    board = Board(orders)
    before, at = len(board.journal), board.run.at
    board.now += 1_000
    other = board.run.nodes["send"].task
    with pytest.raises(raised):
        board.complete("charge", 5)
    assert (len(board.journal), board.run.at) == (before, at)
    with pytest.raises(Stuck):
        board.apply(NodeCompleted(other, "send", 0, text(6)))
    assert not board.machine.calls.actions


@pytest.mark.rule("W-28")
def test_what_is_called_within_an_undo_says_what_it_is_of() -> None:
    @workflow(max_duration=None)
    async def orders(ctx: Context) -> None:
        async def taken_back(amount: int) -> None:
            async with ctx.saga() as inner:
                await inner.run(send, amount, undo=send)
                await outer.run(send, amount, undo=send)
                await charge(amount)

        async with ctx.saga() as outer:
            await outer.run(charge, 1, undo=taken_back)
            raise ValueError("no")

    board = Board(orders)
    for node in ("charge", "send", "send#2", "charge#2"):
        board.complete(node, 1)
    undoes = {
        action.node: action.undoes
        for transition in board.journal
        for action in transition.actions
        if isinstance(action, CreateTask)
    }
    assert undoes["charge"] is None
    assert {undoes[node] for node in ("send", "send#2", "charge#2")} == {"charge"}
