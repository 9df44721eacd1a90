"""Plain asyncio is durable inside a workflow: the same code means the same, live and replayed."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.signal import Signal
from perdure.flow.workflow import workflow
from perdure.kernel.code import calls, loop
from perdure.kernel.code.loop import WorkflowLoop
from perdure.kernel.code.stuck import Stuck
from perdure.model.durations import MAX_DURATION
from tests.unit.kernel.code.board import NEW_YEAR, Board


@step(retry=3)
async def charge(amount: int) -> int:
    return amount


@step
def note(text: str) -> str:
    return text


def test_calls_are_named_by_their_order() -> None:
    @workflow(max_duration=None)
    async def three(ctx: Context) -> list[int]:
        return list(await asyncio.gather(charge(1), charge(2), charge(3)))

    board = Board(three)
    assert board.pending == ["charge", "charge#2", "charge#3"]  # scenarios 1, 6
    board.complete("charge#3", 30)
    board.complete("charge", 10)
    board.complete("charge#2", 20)
    assert board.result == [10, 20, 30]


def test_a_call_is_named_when_made_and_runs_when_awaited() -> None:
    @workflow(max_duration=None)
    async def late(ctx: Context) -> int:
        first, second = charge(1), charge(2)
        await second
        return await first

    board = Board(late)
    assert board.pending == ["charge#2"]
    board.complete("charge#2", 2)
    assert board.pending == ["charge"]


def test_a_step_that_is_never_awaited_never_runs() -> None:
    @workflow(max_duration=None)
    async def forgets(ctx: Context) -> str:
        unused = charge(1)
        unused.close()
        return "done"

    board = Board(forgets)
    assert board.result == "done"
    assert board.told() == [("BeginRun", ""), ("FinishRun", "")]


def test_completions_are_seen_in_the_order_in_which_they_were_recorded() -> None:
    @workflow(max_duration=None)
    async def races(ctx: Context) -> list[int]:
        seen: list[int] = []

        async def one(amount: int) -> None:
            seen.append(await charge(amount))

        await asyncio.gather(one(1), one(2), one(3))
        return seen

    board = Board(races)
    for node in ("charge#2", "charge#3", "charge"):  # scenario 2
        board.reload()
        board.complete(node, int(board.run.nodes[node].task[1:]))
    assert board.result == [2, 3, 1]


def test_asyncio_sleep_is_a_durable_timer() -> None:
    @workflow(max_duration=None)
    async def naps(ctx: Context) -> float:
        await asyncio.sleep(90)
        return asyncio.get_running_loop().time()

    board = Board(naps)
    assert board.run.nodes["timer"].wake_at == NEW_YEAR + 90_000_000
    board.reload()
    board.fire("timer")
    assert board.result == 90


@pytest.mark.parametrize("seconds", [1e13, 1e20, 1e308, float("inf")])
def test_a_timer_without_end_is_due_at_the_last_moment_that_can_be_recorded(seconds: float) -> None:
    @workflow(max_duration=None)
    async def patient(ctx: Context) -> int:
        async with asyncio.timeout(seconds):
            endless = asyncio.create_task(asyncio.sleep(seconds))
            result = await charge(1)
            endless.cancel()
            return result

    board = Board(patient)
    due = [board.run.nodes[node].wake_at for node in board.waiting]
    assert due == [NEW_YEAR + MAX_DURATION] * 2
    board.complete("charge", 7)
    assert board.result == 7


def test_a_timer_whose_time_is_no_number_is_refused() -> None:
    @workflow(max_duration=None)
    async def confused(ctx: Context) -> str:
        try:
            await asyncio.sleep(float("nan"))
        except ValueError as error:
            return str(error)
        return "slept"

    assert "not a number" in Board(confused).result


def test_a_timeout_gives_the_step_up_in_the_same_transition() -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> str:
        try:
            async with asyncio.timeout(5):
                await charge(1)
        except TimeoutError:
            return "too late"
        return "in time"

    board = Board(waits)
    board.fire("timer")
    assert board.told() == [("ResolveWait", "timer"), ("CancelTasks", ""), ("FinishRun", "")]
    assert board.result == "too late"
    assert board.open == {}


def test_a_timeout_that_is_not_needed_takes_its_timer_down() -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> int:
        value = await asyncio.wait_for(charge(1), 5)
        return value + await charge(2)

    board = Board(waits)
    board.complete("charge", 1)
    assert board.waiting == []  # scenarios 27, 40
    assert board.pending == ["charge#2"]


def test_a_timer_set_and_dropped_within_a_turn_is_never_recorded() -> None:
    @workflow(max_duration=None)
    async def quick(ctx: Context) -> str:
        return await asyncio.wait_for(asyncio.sleep(0, "at once"), 5)

    board = Board(quick)
    assert board.told() == [("BeginRun", ""), ("FinishRun", "")]


def test_task_groups_cancel_their_tasks_in_one_order() -> None:
    @workflow(max_duration=None)
    async def fails(ctx: Context) -> list[str]:
        undone: list[str] = []

        async def one(number: int) -> None:
            try:
                await charge(number)
            finally:
                undone.append(await note(f"undo {number}"))

        try:
            async with asyncio.TaskGroup() as group:
                for number in range(20):
                    group.create_task(one(number))
        except BaseExceptionGroup:
            pass
        return undone

    def journal() -> list[Any]:
        board = Board(fails)
        board.fail("charge#7", permanent=True)
        for node in list(board.pending):
            board.reload()
            board.complete(node, node)
        assert board.end.status == "completed"
        return [board.told(index) for index in range(len(board.journal))]

    assert journal() == journal()


@pytest.mark.parametrize(
    ("use", "advice"),
    [
        (lambda: asyncio.to_thread(print, "x"), "@step"),
        (lambda: asyncio.open_connection("localhost", 1), "network inside a @step"),
        (lambda: asyncio.create_subprocess_exec("true"), "processes inside a @step"),
    ],
)
def test_what_reaches_outside_is_refused_with_what_to_write_instead(use: Any, advice: str) -> None:
    @workflow(max_duration=None)
    async def reaches_out(ctx: Context) -> None:
        await use()

    failure = Board(reaches_out).end.failure
    assert failure is not None
    assert failure.kind == "ForbiddenInWorkflow"
    assert advice in failure.message


def test_whatever_a_loop_can_be_asked_is_answered_or_refused_with_advice() -> None:
    bare = asyncio.AbstractEventLoop
    names = [name for name in dir(bare) if not name.startswith("_")]
    assert [name for name in names if getattr(WorkflowLoop, name) is getattr(bare, name)] == []


def spoils(_: object = None) -> None:
    raise ValueError("not mine")


async def of_a_task() -> None:
    task = asyncio.ensure_future(charge(1))
    task.add_done_callback(spoils)
    await task


async def of_the_loop() -> None:
    await charge(1)
    asyncio.get_running_loop().call_soon(spoils)


async def of_a_call() -> None:
    call = charge(1)
    call.send(None).add_done_callback(spoils)
    await charge(2)
    call.close()


@pytest.mark.parametrize("code", [of_a_task, of_the_loop, of_a_call])
def test_what_a_callback_raises_is_told_and_the_code_goes_on(code: Any) -> None:
    """Stalled, the run would make its last attempt once more each time it is tried again."""

    @workflow(max_duration=None)
    async def listens(ctx: Context) -> int:
        await code()
        return await charge(9)

    board = Board(listens)
    while board.pending:
        board.complete(board.pending[0], 7)
        told = [str(one["exception"]) for one in board.machine.calls.loop.untold]
    assert (board.result, told) == (7, ["not mine"])


def test_no_other_thread_may_reach_in() -> None:
    @workflow(max_duration=None)
    async def threads(ctx: Context) -> None:
        loop = asyncio.get_running_loop()
        thread = threading.Thread(target=lambda: None)
        thread.start()
        loop.call_soon_threadsafe(lambda: None)

    failure = Board(threads).end.failure
    assert failure is not None
    assert "no thread may reach into a workflow" in failure.message


def test_a_workflow_that_never_waits_stalls_with_its_line() -> None:
    @workflow(max_duration=None)
    async def spins(ctx: Context) -> None:
        while True:  # noqa: ASYNC110
            await asyncio.sleep(0)

    with pytest.raises(Stuck, match=r"hot loop at line \d+ of test_asyncio.py"):
        Board(spins)


def test_however_many_calls_end_one_after_another_that_is_no_hot_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "IDLE_CALLBACKS", 100)
    monkeypatch.setattr(calls, "IDLE_CALLBACKS", 100)

    @workflow(max_duration=None)
    async def wide(ctx: Context) -> int:
        paid = Signal("paid", int)
        await ctx.wait(paid)

        async def one(amount: int) -> int:
            await ctx.wait(paid)
            return await charge(amount) + await ctx.wait(paid)

        return sum(await asyncio.gather(*map(one, range(50))))

    board = Board(wide)
    board.send("paid", 1)
    for node in board.pending:  # which asks for nothing new, and is answered from memory
        board.complete(node, 1)
    assert board.result == 100


def test_tasks_that_the_function_did_not_wait_for_end_with_it() -> None:
    @workflow(max_duration=None)
    async def leaves(ctx: Context) -> str:
        task = asyncio.create_task(charge(1))
        await asyncio.sleep(0)
        assert not task.done()
        return "done"

    board = Board(leaves)
    assert board.result == "done"
    assert board.run.nodes["charge"].status == "canceled"  # scenario 40


def test_it_runs_inside_a_task_of_another_loop() -> None:
    @workflow(max_duration=None)
    async def simple(ctx: Context) -> int:
        assert asyncio.current_task() is not None
        return await charge(1)

    async def host() -> Any:
        before = asyncio.current_task()
        board = Board(simple)
        board.complete("charge", 5)
        assert asyncio.current_task() is before
        assert asyncio.get_running_loop().is_running()
        return board.result

    assert asyncio.run(host()) == 5


def test_async_generators_are_closed_on_the_workflows_own_loop() -> None:
    closed: list[str] = []

    async def numbers() -> Any:
        try:
            yield 1
            yield 2
        finally:
            closed.append(type(asyncio.get_running_loop()).__name__)

    @workflow(max_duration=None)
    async def breaks(ctx: Context) -> int:
        async for number in numbers():
            return await charge(number)
        return 0

    board = Board(breaks)
    board.complete("charge", 1)
    assert board.result == 1
    assert closed == ["WorkflowLoop"]
