"""TestEngine: the real engine, in time that the test moves, with steps faked."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure import (
    Channel,
    Context,
    Failure,
    InvalidRequest,
    NotFound,
    Retry,
    RunFailed,
    Signal,
    TimedOut,
    current_step,
    step,
    workflow,
)
from perdure.testing import TestEngine
from tests.unit.flow.test_codec import Sealed
from tests.virtual.engines import graph, task, wait, wait_for

confirmed = Signal("confirmed", str)
ticks = Channel("ticks", int)


@step(retry=Retry(3, initial="1h", factor=1, max_delay=None), timeout="1m")
async def mail(to: str, text: str = "hello", *, copy: str = "") -> str:
    raise AssertionError("a test sends no mail")


@step
def real(number: int) -> int:
    return number + 1


@workflow(max_duration="7d")
async def sign_up(ctx: Context, email: str) -> str:
    await mail(email, text="confirm")
    try:
        name = await ctx.wait(confirmed, timeout="72h")
    except TimedOut:
        return "expired"
    await mail(email, copy=name)
    return "done"


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What really takes time takes none here, but for threads."""
    monkeypatch.setattr("perdure.testing.engine.PATIENCE", 0.05)
    monkeypatch.setattr("perdure.testing.engine.STILL", 0.05)


def play(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


def test_a_wait_of_three_days_ends_when_the_test_says_so() -> None:
    async def test() -> None:
        async with TestEngine([sign_up]) as engine:
            sent = engine.fake(mail, returns="sent")
            run = await engine.start(sign_up, "ann", id="1")
            await engine.advance("71h")
            assert await run.status() == "running"
            await engine.advance("1h")
            assert await run.result() == "expired"
            assert sent.calls == [("ann", "confirm", "")]

    play(test())


def test_it_opens_at_its_first_use_and_needs_no_list() -> None:
    async def test() -> None:
        engine = TestEngine()
        sent = engine.fake(mail, returns="sent")
        run = await engine.start(sign_up, "ann")
        await run.signal(confirmed, "Ann")
        assert await run.result() == "done"
        assert sent.calls == [("ann", "confirm", ""), ("ann", "hello", "Ann")]
        assert [one.status async for one in engine.runs()] == ["completed"]

    play(test())


def test_timers_fire_in_order_each_at_its_own_time() -> None:
    @workflow(max_duration=None)
    async def sleeps(ctx: Context) -> list[str]:
        told: list[str] = []

        async def one(hours: int) -> None:
            await ctx.sleep(f"{hours}h")
            told.append(f"{hours} at {ctx.now():%H:%M}")
            await ctx.sleep("10m")
            told.append(f"{hours} again at {ctx.now():%H:%M}")

        await asyncio.gather(one(3), one(1), one(2))
        return told

    async def test() -> None:
        async with TestEngine(now="2030-05-01T00:00:00Z") as engine:
            run = await engine.start(sleeps)
            await engine.advance("1d")
            assert await run.result() == [
                "1 at 01:00", "1 again at 01:10", "2 at 02:00", "2 again at 02:10",
                "3 at 03:00", "3 again at 03:10",
            ]  # fmt: skip
            assert engine.now() == datetime(2030, 5, 2, tzinfo=UTC)

    play(test())


def test_retries_timeouts_deadlines_and_late_starts_go_by_the_same_clock() -> None:
    async def test() -> None:
        async with TestEngine([sign_up]) as engine:
            failing = engine.fake(mail, raises=[OSError("down"), Failure("still down")])
            run = await engine.start(sign_up, "ann", delay="2h")
            await engine.advance("119m")
            assert failing.calls == []
            await engine.advance("1m")
            assert len(failing.calls) == 1
            await engine.advance("1h")
            assert len(failing.calls) == 2
            await engine.advance("1h")
            with pytest.raises(RunFailed, match="still down"):
                await run.result()

            async def hangs(*given: Any, **more: Any) -> str:
                await asyncio.Event().wait()
                raise AssertionError

            engine.fake(mail, hangs)
            run = await engine.start(sign_up, "bob")
            await engine.advance("3h")
            with pytest.raises(TimedOut, match="attempt 3 of node mail took longer than 60 s"):
                await run.result()

            engine.fake(mail, lambda *given, **more: "sent")
            run = await engine.start(forever)
            await engine.advance("2d")
            with pytest.raises(TimedOut, match="max_duration"):
                await run.result()

    play(test())


@workflow(max_duration="1d")
async def forever(ctx: Context) -> None:
    while True:
        await mail(str(await ctx.receive(ticks)))


def test_what_is_not_faked_does_what_it_does_and_is_waited_for() -> None:
    @workflow(max_duration="1h")
    async def adds(ctx: Context, number: int) -> int:
        for _ in range(3):
            number = await real(number)
        await ctx.wait(ticks_over)
        return number

    async def test() -> None:
        async with TestEngine() as engine:
            run = await engine.start(adds, 1)
            await engine.settle()
            assert [r["do"] async for r in run.history()].count("CompleteTask") == 3
            await run.signal(ticks_over, None)
            assert await run.result() == 4

    play(test())


ticks_over = Signal("ticks-over", type(None))


def test_arguments_have_to_fit_the_real_step_and_answers_are_recorded_as_real_ones() -> None:
    @step
    async def totals(numbers: list[int]) -> dict[str, int]:
        return {}

    @workflow(max_duration="1h")
    async def wrong(ctx: Context) -> Any:
        return await totals(3)  # type: ignore[arg-type]

    @workflow(max_duration="1h")
    async def right(ctx: Context) -> Any:
        return await totals([3])

    async def test() -> None:
        async with TestEngine() as engine:
            faked = engine.fake(totals, lambda numbers: {"sum": sum(numbers)})
            with pytest.raises(RunFailed, match="parameter 'numbers'"):
                await engine.run(wrong)
            assert await engine.run(right) == {"sum": 3}
            assert faked.calls == [([3],)]
            engine.fake(totals, returns={"sum": float("nan")})  # type: ignore[dict-item]
            with pytest.raises(RunFailed, match="no NaN"):
                await engine.run(right)
            engine.fake(totals, lambda numbers: {"try": current_step().attempt})
            assert await engine.run(right) == {"try": 1}

    play(test())


def test_children_are_taken_whether_or_not_they_were_listed() -> None:
    @workflow(max_duration="3d")
    async def parent(ctx: Context) -> list[str]:
        return [await ctx.child(sign_up, "kid", id="kid"), await ctx.spawn(sign_up, "other")]

    async def test() -> None:
        async with TestEngine() as engine:
            engine.fake(mail, returns="sent")
            run = await engine.start(parent, id="p")
            await engine.settle()
            await engine.get(sign_up, "kid").signal(confirmed, "Kid")
            assert await run.result() == ["done", "parent/p/sign-up#2"]

    play(test())


def test_graphs_run_too_with_their_steps_faked_by_name() -> None:
    document = graph(
        "sends", [wait("later", "2h"), task("mail", input={"to": "ann"}), wait_for("ok", "go")]
    )

    async def test() -> None:
        async with TestEngine([document, mail]) as engine:
            sent = engine.fake(mail, returns="sent")
            run = await engine.start(document, {}, id="1")
            await engine.advance("2h")
            assert sent.calls == [("ann", "hello", "")]
            await run.signal("go", 1)
            assert await run.result() == {"ok": 1}

    play(test())


def test_a_result_that_only_time_would_bring_is_not_waited_for_for_ever() -> None:
    async def test() -> None:
        async with TestEngine() as engine:
            engine.fake(mail, returns="sent")
            run = await engine.start(sign_up, "ann", id="1")
            with pytest.raises(AssertionError, match=r"sign-up/1 has not ended.*259200 s before"):
                await run.result()
            await run.cancel()
            waiting = await engine.start(waits, id="2")
            with pytest.raises(AssertionError, match="no time would end it: send"):
                await waiting.result()
            with pytest.raises(NotFound):
                await engine.get(sign_up, "none").result()
            # Somebody else may bring it.
            ended = asyncio.ensure_future(waiting.result())
            await engine.settle()
            await waiting.signal(confirmed, "Ann")
            assert await ended == "Ann"

    play(test())


@workflow(max_duration=None)
async def waits(ctx: Context) -> str:
    return await ctx.wait(confirmed)


def test_what_cannot_be_faked_is_refused() -> None:
    engine = TestEngine()
    fake: Any = engine.fake
    for wrong in ({}, {"returns": 1, "raises": OSError()}, {"raises": []}, {"raises": [3]}):
        with pytest.raises(InvalidRequest, match="fake"):
            fake(mail, **wrong)
    with pytest.raises(InvalidRequest, match="give it a step"):
        fake("mail", returns=1)
    with pytest.raises(InvalidRequest):
        fake(mail, raises=KeyboardInterrupt())


def test_copies_of_a_step_are_faked_with_it_and_values_may_be_a_codec_s() -> None:
    @workflow(max_duration="1h")
    async def hurried(ctx: Context) -> str:
        return await mail.with_options(retry=1)("ann")

    async def test() -> None:
        async with TestEngine([hurried], codec=Sealed()) as engine:
            engine.fake(mail, returns="sent")
            assert await engine.run(hurried) == "sent"
            with pytest.raises(RunFailed):
                engine.fake(mail, raises=ValueError("no"))
                await engine.run(hurried)

    play(test())


def test_steps_that_are_under_way_when_a_test_ends_are_let_go_without_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hanging = asyncio.Event()

    @step(timeout="1m")
    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    @workflow(max_duration=None)
    async def hangs(ctx: Context) -> None:
        await hang()

    async def test() -> None:
        async with TestEngine() as engine:
            await engine.start(hangs, id="1")
            await hanging.wait()

    asyncio.run(test())
    assert not caplog.records


def test_nothing_is_left_over_when_a_test_ends_with_runs_that_wait() -> None:
    async def test() -> TestEngine:
        engine = TestEngine()
        await engine.start(waits, id="1")
        await engine.settle()
        return engine

    engine = asyncio.run(test())
    assert len(engine._shell.live) == 1
    engine._let_go()
    assert engine._shell.live == {}
    assert engine.now() - datetime(2027, 1, 15, 8, tzinfo=UTC) == timedelta(0)
