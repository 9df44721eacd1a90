"""Other runs that a workflow starts, joins, waits for and lets go of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.workflow import workflow
from perdure.kernel.actions import CancelChild, ChildFound, StartChild
from perdure.kernel.code.stuck import Stuck
from perdure.kernel.events import ChildFinished, ChildStarted
from perdure.model.errors import Canceled, Failure, InvalidId, RunFailed, TimedOut
from tests.unit.kernel.code.board import Board


class Declined(Failure, kind="declined-child", permanent=True):
    pass


@workflow(max_duration="1d")
async def pay(ctx: Context, amount: int) -> tuple[int, str]:
    return amount, "paid"


@step
async def tidy() -> None: ...


@workflow(max_duration="1d", name="parent")
async def parent(ctx: Context) -> Any:
    return await ctx.child(pay, 5)


def started(board: Board) -> list[StartChild]:
    return [a for t in board.journal for a in t.actions if isinstance(a, StartChild)]


def let_go(board: Board) -> list[CancelChild]:
    return [a for t in board.journal for a in t.actions if isinstance(a, CancelChild)]


def test_a_child_is_recorded_with_an_id_derived_from_its_call_and_answers_as_its_type() -> None:
    board = Board(parent)
    assert board.told()[1:] == [("CreateTask", "pay"), ("StartChild", "pay")]
    [child] = started(board)
    assert (child.definition, child.id) == ("pay", "parent/r1/pay")
    board.find("pay")
    board.reload()
    board.end_child("pay", [5, "paid"])
    assert board.told() == [("CompleteTask", "pay"), ("FinishRun", "")]
    assert board.result == [5, "paid"]


def test_calls_of_one_definition_mean_runs_of_their_own_also_in_the_next_life() -> None:
    @workflow(max_duration="1d", name="parent")
    async def twice(ctx: Context) -> None:
        await asyncio.gather(ctx.child(pay, 1), ctx.child(pay, 2), ctx.spawn(pay, 3))
        ctx.continue_as_new()

    board = Board(twice)
    for node in ("pay", "pay#2"):
        board.end_child(node, [1, "paid"])
    board.find("pay#3", created=False)
    assert [child.id for child in started(board)] == [
        "parent/r1/pay", "parent/r1/pay#2", "parent/r1/pay#3",
        "parent/r1/pay@2", "parent/r1/pay#2@2", "parent/r1/pay#3@2",
    ]  # fmt: skip
    assert [child.detached for child in started(board)] == [False, False, True] * 2


def test_an_id_too_long_to_be_derived_is_shortened_to_one_that_nobody_else_has() -> None:
    @workflow(max_duration="1d", name="parent")
    async def twice(ctx: Context) -> None:
        await asyncio.gather(ctx.child(pay, 1), ctx.child(pay, 2))

    board = Board(twice, id="x" * 250)
    ids = [child.id for child in started(board)]
    assert len(set(ids)) == 2
    assert all(len(id) <= 256 for id in ids)


@pytest.mark.rule("W-3")
def test_a_run_cannot_be_its_own_child() -> None:
    @workflow(max_duration="1d")
    async def own(ctx: Context) -> str:
        for ask in (ctx.child, ctx.spawn):
            with pytest.raises(InvalidId, match="its own child"):
                await ask(pay, 1, id=ctx.id)
            with pytest.raises(InvalidId, match="control"):
                await ask(pay, 1, id="a\nb")
        return "refused"

    board = Board(own)
    assert board.result == "refused"
    assert started(board) == []


@pytest.mark.parametrize(
    ("kind", "status", "raised"),
    [
        ("declined-child", "failed", Declined),
        ("ValueError", "failed", RunFailed),
        ("workflow.timeout", "failed", TimedOut),
        ("whatever", "canceled", Canceled),
    ],
)
def test_a_childs_failure_is_raised_as_its_own_class(
    kind: str, status: str, raised: type[Failure]
) -> None:
    @workflow(max_duration="1d")
    async def asks(ctx: Context) -> list[Any]:
        try:
            await ctx.child(pay, 1, id="p")
        except Failure as error:
            return [type(error).__name__, error.kind, str(error)]
        return []

    board = Board(asks)
    board.fail_child("pay", kind, status)
    shown = "workflow.canceled" if status == "canceled" else kind
    assert board.result == [raised.__name__, shown, "no"]


@pytest.mark.rule("W-34")
@pytest.mark.parametrize("created", [True, False, None])
def test_a_cancel_of_the_parent_lets_the_child_go_and_cleans_up_without_waiting_for_it(
    created: bool | None,
) -> None:
    @workflow(max_duration="1d")
    async def careful(ctx: Context) -> None:
        try:
            await ctx.child(pay, 1, id="p")
        finally:
            await tidy()

    board = Board(careful)
    if created is not None:
        board.find("pay", created=created)
    board.cancel("enough")
    assert board.told() == [
        ("RequestStop", ""), ("CancelChild", "pay"), ("CancelTasks", ""), ("CreateTask", "tidy"),
        ("DispatchTask", "tidy"), ("CreateTask", "~grace"),
    ]  # fmt: skip
    assert [(c.definition, c.id) for c in let_go(board)] == [("pay", "p")]
    board.reload()
    state = board.run.nodes["pay"]
    late = board.apply(ChildStarted(state.task, "pay", True))
    assert late.ignored is not None
    late = board.apply(ChildFinished(state.task, "pay", "canceled"))
    assert late.ignored is not None
    board.complete("tidy")
    assert board.end.status == "canceled"


def test_a_deadline_lets_the_child_go() -> None:
    board = Board(parent)
    board.reach_deadline()
    assert [c.id for c in let_go(board)] == ["parent/r1/pay"]
    assert board.end.status == "failed"
    assert board.end.failure is not None
    assert board.end.failure.kind == "workflow.timeout"


def test_code_that_gives_up_waiting_lets_the_child_go() -> None:
    @workflow(max_duration="1d")
    async def hasty(ctx: Context) -> str:
        try:
            async with asyncio.timeout(60):
                await ctx.child(pay, 1)
        except TimeoutError:
            return "too slow"
        return "paid"

    board = Board(hasty)
    board.find("pay")
    board.fire("timer")
    assert len(let_go(board)) == 1
    assert board.result == "too slow"


def test_a_child_that_the_code_shields_is_waited_for_all_the_same() -> None:
    @workflow(max_duration="1d")
    async def shielded(ctx: Context) -> Any:
        asked = asyncio.ensure_future(ctx.child(pay, 1))
        try:
            return await asyncio.wait_for(asyncio.shield(asked), 60)
        except TimeoutError:
            return await asked

    board = Board(shielded)
    board.fire("timer")
    assert let_go(board) == []
    board.reload()
    board.end_child("pay", [1, "paid"])
    assert board.result == [1, "paid"]


@pytest.mark.rule("W-34")
def test_who_owns_the_child_is_recorded_once_and_survives_a_replay() -> None:
    board = Board(parent)
    board.find("pay", created=True)
    board.reload()
    again = board.apply(ChildStarted(board.run.nodes["pay"].task, "pay", False))
    assert again.ignored is not None
    child = board.run.nodes["pay"].child
    assert child is not None
    assert child.created is True
    found = [a for t in board.journal for a in t.actions if isinstance(a, ChildFound)]
    assert [a.created for a in found] == [True]


@pytest.mark.rule("W-35")
@pytest.mark.parametrize("created", [True, False])
def test_a_spawned_run_is_answered_with_its_id_and_spawned_once(created: bool) -> None:
    @workflow(max_duration="1d", name="parent")
    async def spawns(ctx: Context) -> list[str]:
        first = await ctx.spawn(pay, 1)
        return [first, await ctx.spawn(pay, 2, id="second")]

    board = Board(spawns)
    board.reload()
    board.find("pay", created=created)
    board.reload()
    board.find("pay#2", created=created)
    assert board.result == ["parent/r1/pay", "second"]
    assert len(started(board)) == 2
    assert let_go(board) == []


@pytest.mark.parametrize("other", ["step", "id", "spawn"])
def test_code_that_asks_for_something_else_than_the_recorded_child_is_stopped(other: str) -> None:
    @step(name="pay")
    async def pay_step(amount: int) -> None: ...

    @workflow(max_duration="1d", name="parent")
    async def changed(ctx: Context) -> Any:
        if other == "step":
            return await pay_step(5)
        if other == "id":
            return await ctx.child(pay, 5, id="another")
        return await ctx.spawn(pay, 5)

    board = Board(parent)
    with pytest.raises(Stuck, match="child pay/parent/r1/pay"):
        board.reload(changed)


def test_a_retry_asks_for_the_child_again_under_the_same_id() -> None:
    board = Board(parent)
    board.find("pay")
    board.fail_child("pay")
    assert board.end.status == "failed"
    first = board.run.nodes["pay"].task
    board.retry()
    assert [child.id for child in started(board)] == ["parent/r1/pay"] * 2
    assert board.run.nodes["pay"].task != first
    board.find("pay", created=False)
    board.end_child("pay", [5, "paid"])
    assert board.result == [5, "paid"]
