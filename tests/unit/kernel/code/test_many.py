"""Many at a time: results in the order of the arguments, whoever ends first."""

from __future__ import annotations

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.workflow import workflow
from perdure.model.errors import StepFailed
from tests.unit.kernel.code.board import Board


@step
async def fetch(number: int) -> int:
    return number


def test_map_runs_a_bounded_number_and_keeps_the_order_of_the_items() -> None:
    @workflow(max_duration=None)
    async def maps(ctx: Context) -> list[int]:
        return await ctx.map(fetch, range(5), concurrency=2)

    board = Board(maps)
    while board.run.status == "running":
        assert len(board.pending) <= 2
        board.reload()
        node = board.pending[-1]
        board.complete(node, int(board.run.nodes[node].task[1:]) * 10)
    assert board.result == [10, 20, 30, 40, 50]


def test_map_raises_the_first_failure_and_cancels_the_rest() -> None:
    @workflow(max_duration=None)
    async def maps(ctx: Context) -> str:
        try:
            await ctx.map(fetch, range(5), concurrency=3)
        except StepFailed as failed:
            return failed.message
        return "?"

    board = Board(maps)
    board.fail("fetch#2", "broken")
    assert board.result == "broken"
    assert board.run.nodes["fetch"].status == board.run.nodes["fetch#3"].status == "canceled"


def test_map_collects_failures_in_the_places_of_their_items() -> None:
    @workflow(max_duration=None)
    async def maps(ctx: Context) -> list[str]:
        got = await ctx.map(fetch, [1, 2, 3], on_failure="collect")
        return [f.message if isinstance(f, StepFailed) else str(f) for f in got]

    board = Board(maps)
    board.complete("fetch#3", 3)
    board.fail("fetch#2", "broken")
    board.complete("fetch", 1)
    assert board.result == ["1", "broken", "3"]


@pytest.mark.parametrize("items", [[], [1]])
def test_map_of_little(items: list[int]) -> None:
    @workflow(max_duration=None)
    async def maps(ctx: Context) -> list[int]:
        return await ctx.map(fetch, items)

    board = Board(maps)
    for node in board.pending:
        board.complete(node, 1)
    assert board.result == items


def test_as_completed_gives_outcomes_as_they_come() -> None:
    @workflow(max_duration=None)
    async def races(ctx: Context) -> list[int]:
        return [value async for value in ctx.as_completed([fetch(n) for n in range(3)])]

    board = Board(races)
    for node in ("fetch#3", "fetch", "fetch#2"):
        board.reload()
        board.complete(node, ord(node[-1]))
    assert board.result == [ord("3"), ord("h"), ord("2")]


def test_wait_any_gives_the_first_and_cancels_the_others() -> None:
    @workflow(max_duration=None)
    async def races(ctx: Context) -> list[int]:
        place, value = await ctx.wait_any([fetch(n) for n in range(3)])
        return [place, value, await fetch(9)]

    board = Board(races)
    board.complete("fetch#2", 22)
    assert board.pending == ["fetch#4"]
    board.complete("fetch#4", 1)
    assert board.result == [1, 22, 1]
