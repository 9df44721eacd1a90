"""A clock that is set back takes no attempt's beginning back: what a saga's further attempt did may
have happened, although its time is still to come by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from perdure import Canceled, Engine, Failure, Retry, Saga, SagaContext
from perdure.client.run import Run
from perdure.model.durations import SECOND
from tests.virtual.engines import engine_on, killed
from tests.virtual.loop import VirtualClock, run
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
SEEN: list[str] = []
CLOCKS: list[VirtualClock] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()
    CLOCKS.clear()


class Clock(VirtualClock):
    """Nothing corrects it: it is the machine's, and so is the store's."""

    def correct(self, by: int) -> None:
        """It stays as it is."""


def clock() -> VirtualClock:
    CLOCKS.append(Clock())
    return CLOCKS[-1]


def set_back(seconds: float) -> None:
    for one in CLOCKS:
        one.skew -= int(seconds * SECOND)


def behind(seconds: float) -> Callable[[], VirtualClock]:
    """Of processes that begin after the clock was set back."""

    def made() -> VirtualClock:
        later = Clock()
        later.skew -= int(seconds * SECOND)
        return later

    return made


async def undo(ctx: SagaContext[str]) -> None:
    SEEN.append(ctx.node)


async def charge(ctx: SagaContext[str]) -> None:
    """Busy the first time; the second time nobody hears of what it does; then it says no."""
    SEEN.append(f"charge {ctx.attempt}")
    if len(SEEN) == 1:
        raise ValueError("busy")
    if len(SEEN) == 2:
        await asyncio.sleep(1000)
    raise ValueError("declined")


def of(**options: Any) -> Saga[str]:
    retry = Retry(2, initial=5, jitter=0)
    return Saga("pay", str, max_duration="9h").step(
        "charge", charge, undo=undo, retry=retry, **options
    )


async def second_attempt(engine: Engine, saga: Saga[str]) -> Run[str]:
    started = await engine.start(saga, "ann", id="1")
    await asyncio.sleep(7)
    assert SEEN == ["charge 1", "charge 2"]
    return started


async def ended(started: Run[str], kind: type[Failure]) -> None:
    """It ended so, and nobody knows what was done: it was undone."""
    with pytest.raises(kind) as end:
        await started.result()
    assert end.value.details["unknown"] == ["charge"]  # type: ignore[call-overload,index]
    assert SEEN[-1] == "charge~undo"


@STORES
@pytest.mark.rule("D-18", "S-15")
@pytest.mark.parametrize("by", [3, 3600])
def test_an_attempt_under_way_has_begun_although_its_time_is_still_to_come(
    kind: type[VirtualStore], by: float
) -> None:
    async def main() -> None:
        store, saga = kind(), of()
        async with engine_on(store, saga, clock=clock) as engine:
            started = await second_attempt(engine, saga)
            set_back(by)
            await started.cancel("enough")
            await ended(started, Canceled)

    run(main())


@STORES
@pytest.mark.rule("D-18", "S-15", "S-21")
@pytest.mark.parametrize("by", [3, 3600])
@pytest.mark.parametrize("then", ["cancel", "go on", "post", "close"])
def test_an_attempt_of_a_process_that_died_may_have_begun_before_its_time(
    kind: type[VirtualStore], by: float, then: str
) -> None:
    async def main() -> None:
        store, saga = kind(), of()
        async with killed(store, saga, clock=clock) as engine:
            await second_attempt(engine, saga)
        if then in ("post", "close"):  # a process between the two, which leaves it as it was
            async with engine_on(store, saga, clock=behind(by), grace=0) as engine:
                if then == "post":
                    await engine.get(saga, "1").pause()
                    await asyncio.sleep(0.5)
                    await engine.get(saga, "1").unpause()
                await asyncio.sleep(0.5)
        async with engine_on(store, saga, clock=behind(by)) as engine:
            started = engine.get(saga, "1")
            if then == "cancel":
                await started.cancel("enough")
                await ended(started, Canceled)
            else:
                await ended(started, Failure)

    run(main())


@STORES
@pytest.mark.rule("D-18", "S-15", "S-24")
@pytest.mark.parametrize("by", [3, 3600])
@pytest.mark.parametrize("then", ["cancel", "go on"])
def test_an_attempt_of_a_process_that_was_closed_had_begun_before_its_time(
    kind: type[VirtualStore], by: float, then: str
) -> None:
    async def main() -> None:
        store, saga = kind(), of()
        async with engine_on(store, saga, clock=clock, grace=0) as engine:
            await second_attempt(engine, saga)
            set_back(by)
            store.clock.skew = CLOCKS[0].skew
        async with engine_on(store, saga, clock=behind(by)) as engine:
            started = engine.get(saga, "1")
            if then == "cancel":
                await started.cancel("enough")
                await ended(started, Canceled)
            else:
                await ended(started, Failure)

    run(main())
