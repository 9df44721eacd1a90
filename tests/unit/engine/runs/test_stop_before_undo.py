"""A saga that is canceled or reaches its deadline: attempts under way are asked to stop and their
ends count, whatever they are; what never began is not undone, what nobody knows is."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from perdure import Engine, Retry, Saga, SagaContext
from perdure.client.run import Run
from perdure.model.durations import SECOND
from perdure.model.errors import Canceled, RunFailed
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import VirtualClock, run, settle
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
SEEN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


async def first(ctx: SagaContext[str]) -> None:
    SEEN.append("first")


async def slow(ctx: SagaContext[str]) -> str:
    SEEN.append(f"{ctx.node} begins")
    await asyncio.sleep(100)
    SEEN.append(f"{ctx.node} ends")
    return "slow"


async def stubborn(ctx: SagaContext[str]) -> str:
    """Asked to stop, it finishes what it is at."""
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError:
        await asyncio.sleep(3)
        SEEN.append(f"charged, canceled={ctx.canceled}")
    return "charged"


async def complains(ctx: SagaContext[str]) -> None:
    """Stopped in the middle, it says what it likes: that tells nothing of what it had asked for."""
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError as error:
        raise ValueError("rolled back") from error


async def deaf(ctx: SagaContext[str]) -> None:
    """Goes on when it is asked to stop the first time."""
    try:
        await asyncio.sleep(1000)
    except asyncio.CancelledError:
        SEEN.append("told")
        await asyncio.sleep(1000)


async def undo(ctx: SagaContext[str]) -> None:
    SEEN.append(ctx.node)


def of(step: Any, **options: Any) -> Saga[str]:
    return (
        Saga("pay", str, max_duration="1h").step("first", first, undo=undo)
        .step("second", step, undo=undo, **options).step("third", first)
    )  # fmt: skip


async def details(started: Run[Any]) -> tuple[list[str], list[str]]:
    """What was undone when the run was canceled, and what nobody knows."""
    with pytest.raises(Canceled, match="enough") as ended:
        await started.result()
    told: Any = ended.value.details
    return told["undone"], told["unknown"]


async def begun(engine: Engine, saga: Saga[str]) -> Run[Any]:
    started = await engine.start(saga, "ann", id="1")
    await asyncio.sleep(1)
    return started


@STORES
@pytest.mark.rule("D-18", "SX-3")
@pytest.mark.parametrize(
    ("step", "undone", "unknown", "seen"),
    [
        (slow, ["second", "first"], ["second"], ["second begins"]),
        (stubborn, ["second", "first"], [], ["charged, canceled=True"]),
        (complains, ["second", "first"], ["second"], []),
    ],
)
def test_how_an_attempt_ends_when_it_is_asked_to_stop_counts(
    kind: type[VirtualStore], step: Any, undone: list[str], unknown: list[str], seen: list[str]
) -> None:
    async def main() -> None:
        saga = of(step)
        async with engine_on(kind(), saga) as engine:
            started = await begun(engine, saga)
            await started.cancel("enough")
            assert await details(started) == (undone, unknown)
            assert ["first", *seen, *(f"{node}~undo" for node in undone)] == SEEN

    run(main())


@STORES
@pytest.mark.rule("D-18")
def test_an_attempt_that_does_not_answer_is_given_up_after_the_grace(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        saga = of(deaf)
        async with engine_on(kind(), saga) as engine:
            started = await begun(engine, saga)
            await started.cancel("enough")
            await asyncio.sleep(29)
            assert (await started.status(), SEEN) == ("running", ["first", "told"])
            assert await details(started) == (["second", "first"], ["second"])

    run(main())


@pytest.mark.rule("S-18", "S-19")
def test_a_def_is_told_and_awaited_and_never_undone_under_its_feet() -> None:
    began, go, told = threading.Event(), threading.Event(), threading.Event()

    def in_thread(ctx: SagaContext[str]) -> str:
        began.set()
        while not ctx.canceled:
            go.wait(0.001)
        told.set()
        go.wait()
        SEEN.append("charged")
        return "charged"

    async def main() -> None:
        saga = of(in_thread)
        async with Engine("memory:", [saga]) as engine:
            started = await engine.start(saga, "ann", id="1")
            await asyncio.to_thread(began.wait)
            await started.cancel("enough")
            await asyncio.to_thread(told.wait)
            assert "second~undo" not in SEEN
            go.set()
            assert await details(started) == (["second", "first"], [])
            assert SEEN == ["first", "charged", "second~undo", "first~undo"]

    asyncio.run(main())


@pytest.mark.rule("D-18")
def test_what_a_pause_held_back_is_not_undone() -> None:
    async def main() -> None:
        saga = Saga("pay", str, max_duration="1h").step("first", slow, undo=undo)
        saga = saga.step("second", slow, undo=undo)
        async with engine_on(VirtualStore(), saga) as engine:
            started = await begun(engine, saga)
            await started.pause()
            await asyncio.sleep(200)
            await started.cancel("enough")
            await settle()
            assert (await started.status(), SEEN) == ("running", ["first begins", "first ends"])
            await started.unpause()
            assert await details(started) == (["first"], [])

    run(main())


@STORES
@pytest.mark.rule("D-18")
def test_what_was_under_way_in_a_process_that_died_is_undone_and_never_begun_again(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store, saga = kind(), of(deaf)
        async with killed(store, saga) as engine:
            started = await begun(engine, saga)
            await started.cancel("enough")
            await asyncio.sleep(1)
        SEEN.clear()
        async with engine_on(store, saga) as engine:
            assert await details(engine.get(saga, "1")) == (["second", "first"], ["second"])
            assert SEEN == ["second~undo", "first~undo"]

    run(main())


class Behind(VirtualClock):
    """Of a machine whose clock was set back by an hour."""

    def now(self) -> int:
        return super().now() - 3600 * SECOND

    def correct(self, by: int) -> None:
        """It stays as it is."""


@pytest.mark.rule("D-18")
def test_what_waited_for_its_time_had_begun_by_the_clock_of_who_stopped_the_run() -> None:
    async def again(ctx: SagaContext[str]) -> None:
        if ctx.attempt == 1:
            raise ValueError("busy")
        await deaf(ctx)

    async def main() -> None:
        store, saga = VirtualStore(), of(again, retry=Retry(2, initial=1))
        async with killed(store, saga) as engine:
            started = await begun(engine, saga)
            await asyncio.sleep(5)
            await started.cancel("enough")
            await asyncio.sleep(1)
        async with engine_on(store, saga, clock=Behind) as engine:
            assert await details(engine.get(saga, "1")) == (["second", "first"], ["second"])

    run(main())


@STORES
@pytest.mark.rule("D-18", "D-20")
def test_a_run_that_died_while_it_undid_goes_on_with_that(kind: type[VirtualStore]) -> None:
    async def slowly(ctx: SagaContext[str]) -> None:
        SEEN.append(f"{ctx.node} {ctx.attempt} of {ctx.payload}")
        await asyncio.sleep(20)

    async def bad(ctx: SagaContext[str]) -> None:
        raise ValueError("no stock")

    async def main() -> None:
        saga = (
            Saga("pay", str, max_duration="1h").step("first", first, undo=slowly)
            .step("second", first, undo=slowly).step("third", bad)
        )  # fmt: skip
        store = kind()
        async with killed(store, saga) as engine:
            await engine.start(saga, "ann", id="1")
            await asyncio.sleep(30)
        assert SEEN == ["first", "first", "second~undo 1 of ann", "first~undo 1 of ann"]
        SEEN.clear()
        async with engine_on(store, saga) as engine:
            started = engine.get(saga, "1")
            await settle()
            await started.cancel("too late")
            with pytest.raises(RunFailed, match="no stock") as ended:
                await started.result()
            assert SEEN == ["first~undo 1 of ann"]
            assert ended.value.compensated

    run(main())
