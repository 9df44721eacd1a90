"""crash_everywhere: the user's own workflow, killed at every write."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from perdure import Channel, Context, Failure, InvalidRequest, Signal, TimedOut, step, workflow
from perdure.testing import Sent, TestEngine, crash_everywhere
from tests.virtual.engines import graph, task, wait_for

confirmed = Signal("confirmed", str)
news = Channel("news", int)


@step(retry=3)
def mail(to: str) -> str:
    return f"to {to}"


@step
async def charge(cents: int) -> int:
    return cents


@workflow(max_duration="7d")
async def sign_up(ctx: Context, email: str) -> str:
    await mail(email)
    try:
        name = await ctx.wait(confirmed, timeout="72h")
    except TimedOut:
        return "expired"
    return await mail(name)


def test_a_workflow_comes_out_the_same_wherever_it_is_killed() -> None:
    async def test() -> None:
        report = await crash_everywhere(
            sign_up, "ann", script=[Sent("1h", confirmed, "Ann")], may_repeat=[mail]
        )
        assert report.points > 6
        assert report.repeated["mail"] > 1
        silent = await crash_everywhere(sign_up, "ann", may_repeat=[mail])
        assert 3 < silent.points < report.points

    asyncio.run(test())


def test_a_step_that_may_not_be_repeated_is_told_with_where_it_was() -> None:
    @workflow(max_duration="1h")
    async def pays(ctx: Context, cents: int) -> int:
        return await charge(cents)

    async def test() -> None:
        with pytest.raises(AssertionError, match=r"killed before write \d \(CompleteTask charge.*"
                           r"step charge is done twice: let it look at current_step"):  # fmt: skip
            await crash_everywhere(pays, 3)
        report = await crash_everywhere(pays, 3, may_repeat=[charge])
        assert report.repeated == {"charge": 1}, "once: its record is durable or it is not"

    asyncio.run(test())


def test_a_workflow_that_does_something_else_after_a_crash_is_found() -> None:
    lives: list[int] = []

    @workflow(max_duration="1h")
    async def forgets(ctx: Context, number: int) -> int:
        lives.append(1)
        await mail(str(len(lives)))
        return await charge(number)

    async def test() -> None:
        with pytest.raises(
            AssertionError, match=r"the run ends stalled: .*does not do what it did"
        ):
            await crash_everywhere(forgets, 3, may_repeat=[mail, charge])

    asyncio.run(test())


def test_failures_children_and_what_is_undone_come_out_the_same_too() -> None:
    @workflow(max_duration="1h")
    async def pays(ctx: Context, cents: int) -> int:
        async with ctx.saga() as saga:
            saga.undo(mail, "undone")
            await charge(cents)
            raise Failure("too much", kind="too-much")

    @workflow(max_duration="1d")
    async def outer(ctx: Context, cents: int) -> Any:
        first = await ctx.receive(news)
        try:
            await ctx.child(pays, cents)
        except Failure as failure:
            return [failure.kind, first, await ctx.receive(news)]

    def fakes(engine: TestEngine) -> None:
        engine.fake(charge, returns=1)
        engine.fake(mail, raises=[OSError("busy")])

    async def test() -> None:
        script = [Sent("2h", news, 2), Sent("1h", news, 1)]
        report = await crash_everywhere(
            outer, 5, script=script, fakes=fakes, may_repeat=[mail, charge]
        )
        assert report.points > 20
        assert set(report.repeated) == {"mail", "charge"}

    asyncio.run(test())


def test_a_graph_is_killed_everywhere_too() -> None:
    document = graph(
        "sends", [task("mail", input={"to": "ann"}), wait_for("ok", "confirmed", "1h")]
    )

    async def test() -> None:
        script = [Sent("10m", confirmed, "yes")]
        report = await crash_everywhere(
            document, {}, script=script, may_repeat=[mail], beside=[mail]
        )
        assert report.points > 4
        assert report.repeated == {"mail": 1}

    asyncio.run(test())


def test_no_thread_of_a_killed_engine_is_left() -> None:
    before = threading.enumerate()
    asyncio.run(crash_everywhere(sign_up, "ann", may_repeat=[mail]))
    for thread in threading.enumerate():
        if thread not in before:
            thread.join(10)
            assert not thread.is_alive(), thread.name


def test_a_run_that_waits_for_ever_is_the_same_and_one_without_an_end_is_refused() -> None:
    @workflow(max_duration=None)
    async def waits(ctx: Context) -> str:
        return await ctx.wait(confirmed)

    @workflow(max_duration=None)
    async def beats(ctx: Context) -> None:
        while True:
            await ctx.sleep("1h")

    async def test() -> None:
        assert (await crash_everywhere(waits, None)).points == 2
        with pytest.raises(InvalidRequest, match="beats does not end"):
            await crash_everywhere(beats, None)

    asyncio.run(test())
    with pytest.raises(InvalidRequest, match="give it a Signal or a Channel"):
        Sent("1h", "confirmed", 3)  # type: ignore[arg-type]
