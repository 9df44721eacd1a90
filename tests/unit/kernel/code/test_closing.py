"""Code that is let go of: it does nothing more, and Python finds nothing wrong with it."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from perdure import step
from perdure.flow.context import Context
from perdure.flow.workflow import workflow
from tests.unit.kernel.code.board import Board


@step
async def charge(amount: int) -> int:
    return amount


@step
async def refund(amount: int) -> int:
    return amount


async def helper(amount: int) -> int:
    return await refund(amount)


async def gathers(ctx: Context) -> None:
    try:
        await charge(1)
    finally:
        await asyncio.gather(helper(1), refund(2), ctx.sleep(1))


async def in_time(ctx: Context) -> None:
    try:
        await charge(1)
    finally:
        await asyncio.wait_for(helper(1), 5)


async def one_by_one(ctx: Context) -> None:
    later = helper(1)
    calls = {"a": [helper(2), refund(3)], "b": (helper(4),)}
    try:
        await charge(1)
    finally:
        last = helper(5)
        await refund(9)
        await later
        await asyncio.gather(*calls["a"], *calls["b"], last)


async def in_a_closure(ctx: Context) -> None:
    made = helper(1)

    async def all_of_it() -> None:
        await charge(1)
        await made

    await asyncio.gather(all_of_it(), helper(2))


async def in_a_group(ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(helper(1))
        try:
            await charge(1)
        finally:
            group.create_task(helper(2))
            async with asyncio.timeout(3), ctx.saga() as saga:
                await saga.run(charge, 2, undo=refund)


async def deep(ctx: Context) -> None:
    async def down(n: int) -> None:
        if n:
            await down(n - 1)
        else:
            await charge(1)

    await down(200)


@pytest.mark.parametrize(
    "code", [gathers, in_time, one_by_one, in_a_closure, in_a_group, deep], ids=lambda f: f.__name__
)
def test_code_that_is_right_is_let_go_of_without_a_word(
    code: Callable[[Context], Any], capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        board = Board(workflow(max_duration=None)(code))
        before = list(board.journal)
        assert board.machine.close() == []
        assert not board.machine.calls.actions
        assert board.journal == before
        del board
        gc.collect()
    assert [str(one.message) for one in heard] == []
    assert capsys.readouterr().err == ""


def test_those_above_are_not_told_of_an_error_that_is_none() -> None:
    heard: list[BaseException] = []

    @workflow(max_duration=None)
    async def listens(ctx: Context) -> None:
        async def cleans() -> None:
            try:
                await charge(1)
            finally:
                await refund(1)

        try:
            await cleans()
        except Exception as error:
            heard.append(error)
            raise

    board = Board(listens)
    assert board.machine.close() == []
    assert heard == []


def test_what_it_asks_for_on_its_way_out_has_no_effect() -> None:
    @workflow(max_duration=None)
    async def asks(ctx: Context) -> None:
        try:
            await charge(1)
        finally:
            assert not ctx.patched("later")
            asyncio.get_running_loop().call_later(5, print)
            await ctx.sleep(1)

    board = Board(asks)
    board.machine.close()
    assert not board.machine.calls.actions
    assert list(board.run.nodes) == ["charge"]


def test_code_that_will_not_end_is_named_and_kept() -> None:
    going_on = True

    @workflow(max_duration=None)
    async def deaf(ctx: Context) -> None:
        while going_on:
            try:
                await charge(1)
            except BaseException:
                continue

    board = Board(deaf)
    (said,) = board.machine.close()
    assert said.startswith("main: ")
    going_on = False


NEVER_ENDS = """
import os
from perdure import Context, workflow
from tests.unit.kernel.code.board import Board

def heard(said=[], write=os.write, leave=os._exit):
    said.append(1)
    write(1, b"heard ")
    if len(said) > 200:
        leave(9)  # it would hear for ever

@workflow(max_duration=None)
async def deaf(ctx: Context) -> None:
    hear, all_of_it, sleep = heard, BaseException, ctx.sleep
    while True:
        try:
            await sleep(1)
        except all_of_it:
            hear()

def main():
    assert Board(deaf).machine.close()

main()
os.write(1, b"end ")
"""


def test_code_that_will_not_end_is_not_run_on_at_the_end_of_the_process_either() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NEVER_ENDS], capture_output=True, text=True, check=False
    )
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout.endswith("heard end ")
