"""Steps that workflows call: in threads and on the loop, tried again, timed out, many at once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from perdure import Context, Failure, Retry, RunFailed, StepFailed, current_step, step, workflow
from perdure.model.errors import Permanent, TimedOut
from tests.virtual.engines import engine_on
from tests.virtual.stores import LateStore, VirtualStore
from tests.virtual.threads import run


def now() -> float:
    return asyncio.get_running_loop().time()


@step
async def double(value: int) -> int:
    await asyncio.sleep(1)
    return 2 * value


@step
def in_thread(value: int) -> str:
    return f"{value} {threading.current_thread() is threading.main_thread()}"


class CardDeclined(Failure, kind="card-declined", permanent=True):
    pass


@pytest.mark.rule("W-28", "W-29")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_steps_run_in_threads_and_on_the_loop_and_give_their_outputs(
    kind: type[VirtualStore],
) -> None:
    @workflow(max_duration=None)
    async def both(ctx: Context, number: int) -> list[Any]:
        one, two = await asyncio.gather(double(number), double(number + 1))
        return [one, two, await in_thread(number)]

    async def main() -> None:
        async with engine_on(kind(), both) as engine:
            assert await engine.run(both, 3, id="1") == [6, 8, "3 False"]
            assert now() < 1.1, "what is gathered runs side by side"

    run(main())


@pytest.mark.rule("W-9", "W-50")
def test_a_failed_attempt_is_tried_again_after_its_delay_and_the_code_sees_only_the_end() -> None:
    tries: list[float] = []

    @step(retry=Retry(4, initial=2, factor=3, max_delay=10, jitter=0))
    async def flaky() -> int:
        tries.append(now())
        if len(tries) < 4:
            raise ValueError("no")
        return current_step().attempt

    @workflow(max_duration=None)
    async def stubborn(ctx: Context) -> int:
        return await flaky()

    async def main() -> None:
        async with engine_on(VirtualStore(), stubborn) as engine:
            assert await engine.run(stubborn, id="1") == 4
            assert [round(at) for at in tries] == [0, 2, 8, 18]

    run(main())


@pytest.mark.rule("W-12", "W-50")
def test_a_call_is_tried_by_the_policy_of_the_copy_that_was_called() -> None:
    tries: list[str] = []

    @step(retry=5)
    async def fails(who: str) -> None:
        tries.append(who)
        raise ValueError(who)

    @workflow(max_duration=None)
    async def both(ctx: Context) -> list[Any]:
        ends = await asyncio.gather(
            fails("base"),
            fails.with_options(retry=Retry(2, initial=0))("copy"),
            fails.with_options(retry=1)("once"),
            return_exceptions=True,
        )
        return [(end.step, end.attempt) for end in ends if isinstance(end, StepFailed)]

    async def main() -> None:
        async with engine_on(VirtualStore(), both) as engine:
            assert await engine.run(both, id="1") == [["fails", 5], ["fails", 2], ["fails", 1]]
        assert sorted(tries) == ["base"] * 5 + ["copy"] * 2 + ["once"]

    run(main())


@pytest.mark.rule("W-29", "W-43", "W-53")
def test_a_permanent_failure_is_not_tried_again_and_keeps_its_class() -> None:
    tries: list[int] = []

    @step(retry=5)
    async def charge(amount: int) -> None:
        tries.append(amount)
        if amount == 1:
            raise CardDeclined("no money")
        raise Permanent(ValueError("never"))

    @workflow(max_duration=None)
    async def order(ctx: Context) -> str:
        try:
            await charge(1)
        except CardDeclined as declined:
            said = str(declined)
        try:
            await charge(2)
        except StepFailed as failed:
            return f"{said}, {failed.kind} {failed.message} {failed.step} {failed.attempt}"
        return "charged"

    async def main() -> None:
        async with engine_on(VirtualStore(), order) as engine:
            assert await engine.run(order, id="1") == "no money, ValueError never charge 1"
        assert tries == [1, 2]

    run(main())


@pytest.mark.rule("W-48")
def test_an_attempt_past_its_timeout_is_timed_out_and_each_has_its_own_time() -> None:
    begun: list[float] = []

    @step(timeout=5, retry=Retry(2, initial=1, jitter=0))
    async def hangs() -> None:
        begun.append(now())
        await asyncio.sleep(3600)

    @workflow(max_duration=None)
    async def waits(ctx: Context) -> str:
        try:
            await hangs()
        except TimedOut as late:
            return str(late)
        return "done"

    async def main() -> None:
        async with engine_on(VirtualStore(), waits) as engine:
            said = await engine.run(waits, id="1")
            assert "attempt 2" in said
            assert "took longer than 5 s" in said
            assert [round(at) for at in begun] == [0, 6]

    run(main())


def test_a_step_that_fails_ends_the_run_with_its_failure_where_nobody_catches_it() -> None:
    @step
    async def breaks() -> None:
        raise KeyError("gone")

    @workflow(max_duration=None)
    async def careless(ctx: Context) -> None:
        await breaks()

    @workflow(max_duration=None)
    async def declines(ctx: Context) -> None:
        raise CardDeclined("no money")

    async def main() -> None:
        async with engine_on(VirtualStore(), careless, declines) as engine:
            with pytest.raises(RunFailed) as failed:
                await engine.run(careless, id="1")
            assert failed.value.kind == "KeyError"
            with pytest.raises(CardDeclined, match="no money"):
                await engine.run(declines, id="1")

    run(main())


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_thousands_of_steps_at_once(kind: type[VirtualStore]) -> None:
    @step
    async def one(value: int) -> int:
        await asyncio.sleep(0.01)
        return value

    @workflow(max_duration=None)
    async def wide(ctx: Context, count: int) -> int:
        return sum(await asyncio.gather(*map(one, range(count))))

    async def main() -> None:
        async with engine_on(kind(), wide) as engine:
            assert await engine.run(wide, 3000, id="1") == 3000 * 2999 // 2

    run(main())
