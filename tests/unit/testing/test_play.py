"""play: a workflow by the real engine in virtual time, its steps faked by the test."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest

from perdure import (
    After,
    Canceled,
    Context,
    Failure,
    InvalidRequest,
    NonDeterminism,
    Retry,
    RunFailed,
    Signal,
    TimedOut,
    step,
    workflow,
)
from perdure.testing import Sent, play

confirmed = Signal("confirmed", str)


class Receipt(msgspec.Struct):
    id: str
    cents: int


class Declined(Failure, kind="declined-in-play", permanent=True): ...


@step(retry=3)
async def mail(to: str, text: str) -> None:
    raise AssertionError("the real step is not called")


@step(retry=Retry(4, initial=10), timeout="1m")
def charge(cents: int) -> Receipt:
    raise AssertionError("the real step is not called")


@workflow(max_duration="7d")
async def sign_up(ctx: Context, email: str) -> str:
    await mail(email, "please confirm")
    try:
        name = await ctx.wait(confirmed, timeout="72h")
    except TimedOut:
        return "expired"
    await mail(email, f"welcome, {name}")
    return "done"


@workflow(max_duration="1d")
async def pay(ctx: Context, cents: int) -> Receipt:
    return await charge(cents)


def test_silence_passes_in_no_time() -> None:
    played = play(sign_up, "ann", steps={mail: None})
    assert (played.status, played.output, played.seconds) == ("completed", "expired", 72 * 3600)
    (call,) = played.calls_of(mail)
    assert (call.arguments, call.at) == ({"to": "ann", "text": "please confirm"}, 0.0)


def test_a_signal_comes_at_its_time() -> None:
    played = play(sign_up, "ann", steps={"mail": None}, signals=[("48h", confirmed, "Ann")])
    assert played.result() == "done"
    assert [call.node for call in played.calls] == ["mail", "mail#2"]
    assert played.seconds == 48 * 3600


def test_answers_follow_one_another_and_outputs_are_typed() -> None:
    answers = [Failure("busy"), {"fail": "busy", "retry_after": "2m"}, {"id": "r", "cents": 5}]
    played = play(pay, 5, steps={charge: answers})
    assert played.result() == Receipt("r", 5)
    assert [(call.attempt, call.at) for call in played.calls] == [(1, 0.0), (2, 10.0), (3, 40.0)]


def test_a_function_answers_with_the_arguments_of_the_call() -> None:
    async def fake(cents: int) -> Any:
        await asyncio.sleep(3)
        return {"id": f"r-{cents}", "cents": cents}

    played = play(pay, 7, steps={charge: fake})
    assert (played.result(), played.seconds) == (Receipt("r-7", 7), 3.0)


def test_a_failure_of_ones_own_class_comes_out_as_that() -> None:
    played = play(pay, 7, steps={charge: Declined("no money")})
    assert (played.status, len(played.calls)) == ("failed", 1)
    with pytest.raises(Declined, match="no money"):
        played.result()


def test_an_attempt_that_takes_too_long_times_out() -> None:
    slow = {"result": {"id": "r", "cents": 1}, "delay": "2m"}
    played = play(pay, 1, steps={charge: [slow, {"id": "r", "cents": 1}]})
    assert (played.status, played.seconds) == ("completed", 70.0)


def test_a_cancel_comes_at_its_time_and_cleaning_up_is_played_too() -> None:
    @workflow(max_duration=None)
    async def tidy(ctx: Context) -> None:
        try:
            await ctx.wait(confirmed)
        finally:
            await mail("ann", "sorry")

    played = play(tidy, steps={mail: None}, cancel="5m")
    assert (played.status, played.seconds, len(played.calls)) == ("canceled", 300.0, 1)
    with pytest.raises(Canceled):
        played.result()


def test_what_would_never_end_is_told_instead_of_waited_for() -> None:
    @workflow(max_duration=None)
    async def patient(ctx: Context) -> str:
        return await ctx.wait(confirmed)

    played = play(patient)
    assert (played.status, played.reason) == (
        "waiting", "wait:confirmed waits for signal confirmed for ever",
    )  # fmt: skip
    with pytest.raises(AssertionError, match="patient is waiting"):
        played.result()


def test_a_step_without_an_answer_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"step charge is called \(charge\) and has no answer"):
        play(pay, 1, steps={mail: None})
    assert play(pay, 1, default={"id": "x", "cents": 1}).result().id == "x"


def test_an_input_that_does_not_fit_is_refused_before_anything_runs() -> None:
    with pytest.raises(InvalidRequest, match="input of workflow pay"):
        play(pay, "five", steps={charge: None})


def test_code_that_does_something_else_when_it_runs_again_is_caught() -> None:
    numbers = itertools.count()

    @workflow(max_duration="1h")
    async def fickle(ctx: Context) -> None:
        await mail("ann", f"number {next(numbers)}")

    with pytest.raises(NonDeterminism, match=r"fickle, replayed: .*number 0.*number 1"):
        play(fickle, steps={mail: None})


def test_the_workflows_own_failure_is_the_runs() -> None:
    @workflow(max_duration="1h")
    async def wrong(ctx: Context) -> None:
        raise ValueError("no such thing")

    with pytest.raises(RunFailed, match="no such thing") as caught:
        play(wrong).result()
    assert caught.value.kind == "ValueError"


def test_a_value_that_does_not_fit_is_no_fact_and_the_next_one_is_waited_for() -> None:
    wrong: list[str] = []

    @workflow(max_duration="1d")
    async def patient(ctx: Context) -> list[str]:
        try:
            await ctx.wait(confirmed)
        except InvalidRequest as error:
            wrong.append(str(error))
        return [await ctx.wait(confirmed), await ctx.wait(confirmed)]

    played = play(patient, signals=[("1h", "confirmed", 5), ("2h", "confirmed", "Ann")])
    assert (played.result(), played.seconds) == (["Ann", "Ann"], 7_200.0)
    assert wrong[0].startswith("signal confirmed: ")


def test_a_signal_that_nobody_took_is_noted() -> None:
    @workflow(max_duration="1h")
    async def deaf(ctx: Context) -> None:
        await ctx.select(confirmed["a"], After("10m"))

    played = play(deaf, signals=[("1m", "other", None), ("2h", confirmed, "x")])
    assert played.notes == (
        "no node took signal other",
        "signal confirmed was not sent: the run had ended before",
    )


def test_it_may_be_called_where_a_loop_is_running() -> None:
    async def main() -> str:
        return play(sign_up, "ann", steps={mail: None}).result()

    assert asyncio.run(main()) == "expired"


def test_it_begins_when_it_is_told() -> None:
    @workflow(max_duration="1h")
    async def clock(ctx: Context) -> str:
        return f"{ctx.now():%Y-%m-%d}"

    assert play(clock, now="2031-05-06T00:00:00Z").result() == "2031-05-06"


def test_children_are_played_too_and_signals_may_be_sent_by_a_script() -> None:
    said = Signal("said", int)

    @step
    def doubled(number: int) -> int:
        raise AssertionError

    @workflow(max_duration="1h")
    async def child(ctx: Context, number: int) -> int:
        await ctx.sleep("5m")
        return await doubled(number)

    @workflow(max_duration="1h")
    async def parent(ctx: Context) -> list[int]:
        return [await ctx.wait(said), await ctx.child(child, 4)]

    played = play(
        parent, steps={doubled: lambda n: n * 2}, signals=[Sent("1m", said, 3)], beside=[child]
    )
    assert (played.result(), played.seconds) == ([3, 8], 6 * 60)
