"""Timers: by name, at their time by the clock, in order, and gone when disarmed."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from perdure.engine.clock import SystemClock, error_of
from perdure.engine.runs.timers import Timers
from tests.virtual.loop import BEGIN, VirtualClock, run

SECOND = 1_000_000


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_timer_fires_once_at_its_time_and_is_gone() -> None:
    async def main() -> list[float]:
        fired: list[float] = []
        timers = Timers(VirtualClock())
        timers.arm("a", BEGIN + 90 * SECOND, lambda: fired.append(now()))
        assert timers.due("a") == BEGIN + 90 * SECOND
        await asyncio.sleep(1000)
        assert timers.due("a") is None
        return fired

    assert run(main()) == [pytest.approx(90)]


def test_a_timer_that_is_due_already_fires_at_the_next_turn_and_not_within_the_call() -> None:
    async def main() -> None:
        fired: list[str] = []
        timers = Timers(VirtualClock())
        timers.arm("a", BEGIN - SECOND, lambda: fired.append("a"))
        assert fired == []
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert fired == ["a"]

    run(main())


def test_arming_a_name_again_replaces_its_timer() -> None:
    async def main() -> list[str]:
        fired: list[str] = []
        timers = Timers(VirtualClock())
        timers.arm("a", BEGIN + SECOND, lambda: fired.append("old"))
        timers.arm("a", BEGIN + 2 * SECOND, lambda: fired.append("new"))
        timers.disarm("b")
        await asyncio.sleep(10)
        return fired

    assert run(main()) == ["new"]


def test_a_disarmed_timer_never_fires_and_leaves_nothing() -> None:
    # scenario 27
    async def main() -> None:
        timers = Timers(VirtualClock())
        timers.arm("a", BEGIN + SECOND, pytest.fail)
        timers.disarm("a")
        timers.arm("b", BEGIN + SECOND, pytest.fail)
        timers.after(1, pytest.fail)
        assert timers.momentary
        timers.close()
        assert not timers.momentary
        assert asyncio.get_running_loop().time() == 0
        await asyncio.sleep(10)

    run(main())


def test_timers_of_one_moment_fire_in_the_order_of_their_arming_and_may_disarm_others() -> None:
    # scenario 65
    async def main() -> list[str]:
        fired: list[str] = []
        timers = Timers(VirtualClock())
        for name in "dcba":
            timers.arm(name, BEGIN + SECOND, partial(fired.append, name))
        timers.arm("early", BEGIN + SECOND // 2, lambda: timers.disarm("c"))
        await asyncio.sleep(10)
        return fired

    assert run(main()) == ["d", "b", "a"]


def test_a_clock_that_is_set_forward_or_back_is_noticed_within_a_minute() -> None:
    async def main() -> None:
        clock = VirtualClock()
        fired: list[float] = []
        timers = Timers(clock)
        timers.arm("a", BEGIN + 3600 * SECOND, lambda: fired.append(now()))
        await asyncio.sleep(90)
        clock.skew = 3600 * SECOND  # a laptop that slept
        await asyncio.sleep(61)
        assert fired == [pytest.approx(120)]
        timers.arm("b", clock.now() + 90 * SECOND, lambda: fired.append(now()))
        clock.skew -= 1000 * SECOND
        await asyncio.sleep(100)
        assert len(fired) == 1, "not early"
        await asyncio.sleep(1000)
        assert len(fired) == 2

    run(main())


@pytest.mark.parametrize(
    ("before", "seen", "after", "error"),
    [(10, 15, 20, 0), (10, 10, 20, 0), (10, 20, 20, 0), (10, 5, 20, -5), (10, 27, 20, 7)],
)
def test_a_clock_is_wrong_only_by_what_the_time_of_asking_does_not_explain(
    before: int, seen: int, after: int, error: int
) -> None:
    assert error_of(before, seen, after) == error


def test_the_machines_clock_can_be_corrected() -> None:
    clock = SystemClock()
    clock.correct(5_000_000)
    clock.correct(-1_000_000)
    assert clock.offset == 4_000_000
    assert clock.now() - SystemClock().now() == pytest.approx(4_000_000, abs=1_000_000)
