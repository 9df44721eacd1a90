"""Dispatcher: however an attempt ends, it becomes one event, and the engine lives on."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from perdure.codec.values import PAYLOAD_LIMIT
from perdure.flow.step import step
from perdure.kernel.events import NodeFailed
from perdure.model.durations import SECOND
from perdure.model.errors import Failure
from perdure.model.policy import Retry
from tests.virtual.attempts import Desk
from tests.virtual.loop import run


@step
async def wait_for_ever() -> None:
    await asyncio.Event().wait()


@step(retry=5)
async def returns(what: str) -> Any:
    return {
        "nan": {"total": float("nan")},
        "object": {"order": object()},
        "large": "x" * (PAYLOAD_LIMIT + 1),
        "huge integer": 2**70,
        "itself": _itself(),
    }[what]


def _itself() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


class Odd(BaseException):
    """A user's exception that is no Exception."""


# ----------------------------------------------------------------------------------- time limits


def test_an_attempt_that_takes_too_long_fails_with_kind_workflow_timeout() -> None:
    async def main() -> None:
        desk, began = Desk(wait_for_ever), asyncio.get_running_loop().time()
        failure = await desk.failure(wait_for_ever, number=2, limit=90 * SECOND)
        assert failure.kind == "workflow.timeout"
        assert not failure.permanent
        assert failure.message == "attempt 3 of node ship took longer than 90 s"
        assert asyncio.get_running_loop().time() - began == 90

    run(main())


@pytest.mark.rule("D-30")
def test_a_step_has_a_minute_unless_it_says_otherwise_and_none_is_no_limit() -> None:
    @step(timeout=None)
    async def patient() -> str:
        await asyncio.sleep(86_400)
        return "at last"

    async def main() -> None:
        desk = Desk(wait_for_ever, patient)
        assert (await desk.failure(wait_for_ever)).kind == "workflow.timeout"
        assert asyncio.get_running_loop().time() == 60
        assert await desk.output(patient) == "at last"

    run(main())


def test_a_step_that_swallows_its_cancellation_keeps_the_outcome_it_returns() -> None:
    @step(timeout=1)
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(5)
        return "done all the same"

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        assert await Desk(stubborn).output(stubborn) == "done all the same"
        assert task.cancelling() == 0

    run(main())


def test_a_step_that_answers_its_cancellation_with_an_error_has_timed_out() -> None:
    @step(timeout=1)
    async def sulky() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("how dare you") from None

    async def main() -> None:
        assert (await Desk(sulky).failure(sulky)).kind == "workflow.timeout"

    run(main())


def test_a_step_that_ends_at_the_moment_of_its_timeout_keeps_its_outcome() -> None:
    # scenario 33: its last wait is over before the deadline is looked at.
    @step(timeout=10)
    async def just_in_time() -> str:
        done = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(9.999_999, done.set_result, None)
        await done
        return "just in time"

    async def main() -> None:
        assert await Desk(just_in_time).output(just_in_time) == "just in time"

    run(main())


def test_a_timeout_that_expired_does_not_reach_the_next_attempt_of_the_task() -> None:
    @step
    async def quick() -> str:
        await asyncio.sleep(1)
        return "well"

    async def main() -> None:
        desk = Desk(wait_for_ever, quick)
        await desk.failure(wait_for_ever, limit=SECOND)
        assert await desk.output(quick) == "well"
        await asyncio.sleep(1000)  # nothing is left to strike later

    run(main())


def test_a_step_is_told_when_its_time_is_over() -> None:
    from perdure.model.step_context import current_step

    seen: list[bool] = []

    @step(timeout=1)
    async def watchful() -> None:
        context = current_step()
        try:
            await asyncio.sleep(60)
        finally:
            seen.append(context.canceled)

    run(Desk(watchful).failure(watchful))
    assert seen == [True]


# ------------------------------------------------------------------------------- what it raises


@pytest.mark.rule("D-29")
def test_a_cancelled_error_of_the_steps_own_making_is_its_failure() -> None:
    # scenario 29
    @step
    async def confused() -> None:
        raise asyncio.CancelledError("by myself")

    @step
    async def inner() -> None:
        work = asyncio.ensure_future(asyncio.sleep(60))
        asyncio.get_running_loop().call_later(1, work.cancel)
        await work

    async def main() -> None:
        desk = Desk(confused, inner)
        failure = await desk.failure(confused)
        assert (failure.kind, failure.message) == ("CancelledError", "by myself")
        assert (await desk.failure(inner)).kind == "CancelledError"

    run(main())


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_process_goes_through_and_an_exit_is_told(
    ending: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    @step
    async def end() -> None:
        raise ending(5)

    async def main() -> None:
        with pytest.raises(ending):
            await Desk(end).report(end)

    run(main())
    told = [record.getMessage() for record in caplog.records]
    assert [("ends the process, at attempt 1: SystemExit(5)" in one) for one in told] == (
        [True] if ending is SystemExit else []
    )


@pytest.mark.rule("D-29")
def test_what_ends_the_process_goes_through_inside_a_group() -> None:
    @step
    async def end() -> None:
        raise BaseExceptionGroup("g", [ValueError(), SystemExit()])

    async def main() -> None:
        with pytest.raises(BaseExceptionGroup):
            await Desk(end).report(end)

    run(main())


@pytest.mark.rule("D-29", "SX-5")
@pytest.mark.parametrize("odd", [Odd, GeneratorExit, BaseExceptionGroup, asyncio.CancelledError])
@pytest.mark.parametrize("late", [False, True])
def test_other_exceptions_that_are_no_exception_are_failures_that_may_be_tried_again(
    odd: type[BaseException], late: bool
) -> None:
    # scenario 109
    @step(retry=2)
    async def raise_it() -> None:
        if late:
            await asyncio.sleep(1)
        raise odd("all", [Odd("inside")]) if odd is BaseExceptionGroup else odd("outside")

    async def main() -> None:
        failure = await Desk(raise_it).failure(raise_it)
        assert failure.kind in (odd.__name__, "Odd")
        assert not failure.permanent

    run(main())


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("kind", [Odd, asyncio.CancelledError])
def test_so_are_those_that_cannot_say_what_they_are(kind: type[BaseException]) -> None:
    class Mute(kind):  # type: ignore[valid-type, misc]
        def __str__(self) -> str:
            raise ValueError

    @step(retry=2)
    async def raise_it() -> None:
        raise Mute

    async def main() -> None:
        failure = await Desk(raise_it).failure(raise_it)
        assert failure.kind in ("Mute", "CancelledError")
        assert (failure.message[:28], failure.permanent) == ("(its message cannot be read:", False)

    run(main())


@pytest.mark.rule("D-29")
def test_the_hosts_cancellation_is_not_swallowed_and_nothing_is_recorded() -> None:
    async def main() -> None:
        reports: list[Any] = []

        async def work() -> None:
            reports.append(await Desk(wait_for_ever).report(wait_for_ever))
            await asyncio.sleep(0)

        task = asyncio.ensure_future(work())
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait([task])
        assert reports == [None]
        assert task.cancelled() or task.cancelling() > 0

    run(main())


def test_a_drop_at_the_moment_of_a_timeout_records_nothing() -> None:
    async def main() -> None:
        task = asyncio.ensure_future(Desk(wait_for_ever).report(wait_for_ever, limit=SECOND))
        asyncio.get_running_loop().call_later(1, task.cancel)
        assert (await asyncio.gather(task, return_exceptions=True))[0] is None

    run(main())


@pytest.mark.parametrize("raises", [False, True])
def test_retry_on_of_the_step_decides_and_one_that_raises_means_no(raises: bool) -> None:
    def judge(error: Exception) -> bool:
        if raises:
            raise RuntimeError("cannot judge")
        return "busy" in str(error)

    @step(retry=Retry(5, retry_on=judge))
    async def call(text: str) -> None:
        raise ValueError(text)

    async def main() -> None:
        desk = Desk(call)
        assert (await desk.failure(call, "busy")).permanent is raises
        assert (await desk.failure(call, "no such customer")).permanent is True

    run(main())


def test_a_failure_keeps_its_kind_details_and_permanence() -> None:
    class CardDeclined(Failure, kind="card-declined", permanent=True):
        pass

    @step
    async def charge() -> None:
        raise CardDeclined("no funds", details={"code": 51})

    failure = run(Desk(charge).failure(charge))
    assert (failure.kind, failure.permanent, failure.details) == (
        "card-declined",
        True,
        {"code": 51},
    )


# ------------------------------------------------------------------------------ what it returns


@pytest.mark.parametrize(
    ("what", "kind", "part"),
    [
        ("nan", "InvalidRequest", "$.total"),
        ("object", "InvalidRequest", "$.order"),
        ("huge integer", "InvalidRequest", "64 bits"),
        ("itself", "InvalidRequest", "nested too deeply"),
        ("large", "PayloadTooLarge", "4,194,304"),
    ],
)
def test_an_output_that_cannot_be_recorded_fails_for_good(what: str, kind: str, part: str) -> None:
    # scenarios 106, 112: made again it would be as wrong, and its effect would happen twice.
    failure = run(Desk(returns).failure(returns, what))
    assert failure.kind == kind
    assert part in failure.message
    assert "output" in failure.message
    assert failure.permanent


class Nameless(type):
    @property
    def __name__(cls) -> str:
        raise Odd


class OddThroughout(Exception, metaclass=Nameless):
    def __str__(self) -> str:
        raise Odd


class OddDict(dict[str, Any]):
    def items(self) -> Any:
        raise Odd


def test_an_attempt_whose_objects_raise_what_is_no_exception_has_failed() -> None:
    @step
    async def odd(how: str) -> Any:
        if how == "returns":
            return OddDict(a=float("nan"))
        raise OddThroughout

    async def main() -> None:
        desk = Desk(odd)
        raised = await desk.failure(odd, "raises")
        assert raised.message == "(its message cannot be read: __str__ raised Odd)"
        returned = await desk.failure(odd, "returns")
        assert returned.kind == "InvalidRequest"
        assert returned.permanent

    run(main())


@pytest.mark.parametrize("value", [None, 0, "", [], {}, False])
def test_falsy_outputs_are_outputs(value: Any) -> None:
    # scenario 110
    @step
    async def give() -> Any:
        return value

    assert run(Desk(give).output(give)) == value


# -------------------------------------------------------------------------------------- secrets


def test_secrets_are_filled_in_anew_for_each_attempt_and_never_recorded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = {"key": "first-secret"}
    seen: list[str] = []

    @step
    async def call(token: str) -> None:
        seen.append(token)
        raise ValueError(f"refused: {token}")

    async def main() -> None:
        desk = Desk(call, secrets=keys)
        secret = {"step": "call", "input": {"token": "Bearer {{secrets.key}}"}}
        at = {"/input/token": "Bearer {{secrets.key}}"}
        failure = await desk.failure(call, secret["input"], secrets=at)
        assert failure.message == "refused: Bearer [secret key]"
        keys["key"] = "second-secret"
        await desk.failure(call, secret["input"], number=1, secrets=at)

    with caplog.at_level(logging.DEBUG):
        run(main())
    assert seen == ["Bearer first-secret", "Bearer second-secret"]
    assert "refused: Bearer [secret key]" in caplog.text
    assert "first-secret" not in caplog.text
    assert "second-secret" not in caplog.text


def test_a_secret_that_is_a_number_leaves_details_that_can_be_read() -> None:
    @step
    async def call(pin: str) -> None:
        raise Failure("refused", kind="pin", details={"pin": int(pin), "tries": 3})

    async def main() -> None:
        desk = Desk(call, secrets={"pin": "271828"})
        at = {"/input/pin": "{{secrets.pin}}"}
        failure = await desk.failure(call, {"pin": "{{secrets.pin}}"}, secrets=at)
        assert failure.details == '{"pin":[secret pin],"tries":3}'

    run(main())


def test_a_secret_that_is_not_there_fails_the_attempt_with_its_name() -> None:
    @step
    async def call(token: str) -> None:
        raise AssertionError("never called")

    async def main() -> None:
        at = {"/input/token": "{{secrets.nothing}}"}
        failure = await Desk(call).failure(call, {"token": "{{secrets.nothing}}"}, secrets=at)
        assert "nothing" in failure.message

    run(main())


# ------------------------------------------------------------------------------------ for people


def test_the_traceback_is_logged_with_the_attempt_as_people_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @step
    async def crash() -> None:
        raise ValueError("it broke")

    run(Desk(crash).failure(crash, number=1))
    assert "order/o-1: attempt 2 of node ship failed" in caplog.text
    assert "Traceback" in caplog.text
    assert 'raise ValueError("it broke")' in caplog.text


@pytest.mark.rule("D-2")
def test_attempts_count_from_0_inside_and_from_1_for_the_step() -> None:
    from perdure.model.step_context import current_step

    @step
    async def crash() -> None:
        raise Failure(f"attempt {current_step().attempt}", kind="counted")

    async def main() -> None:
        report = await Desk(crash).report(crash, number=4)
        assert isinstance(report, NodeFailed)
        assert report.attempt == 4
        assert report.failure.message == "attempt 5"

    run(main())


def test_an_observer_that_fails_at_a_start_does_not_fail_the_attempt() -> None:
    @step
    async def fine() -> str:
        return "fine"

    def broken(order: Any) -> None:
        raise RuntimeError("not my day")

    async def main() -> None:
        desk = Desk(fine)
        desk.dispatcher.on_started = broken
        assert await desk.output(fine) == "fine"

    run(main())
