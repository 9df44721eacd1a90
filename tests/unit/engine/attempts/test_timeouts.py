"""Timeouts: many deadlines, one timer; each expires in its time and order, or never."""

from __future__ import annotations

import asyncio
import random
import weakref
from collections.abc import Callable
from typing import Any

from perdure.engine.attempts.timeouts import QUEUES, Timeouts, Watch
from perdure.model.durations import SECOND
from tests.virtual.loop import run


class Told:
    """Calls somebody when its time is over."""

    def __init__(self, call: Callable[[], object], left: Callable[[], float] = lambda: 0.0) -> None:
        self.deadline = 0.0
        self.queue: dict[Watch, None] | None = None
        self.expired = False
        self.on_expiry: Any = call
        self.left: Any = left


def watch(
    timeouts: Timeouts, seconds: float, call: Callable[[], object],
    left: Callable[[], float] = lambda: 0.0,
) -> Told:  # fmt: skip
    told = Told(call, left)
    timeouts.watch(told, round(seconds * SECOND))
    return told


def done(told: Told) -> None:
    """It ended; also after its time was over, and after all was closed."""
    assert told.queue is not None
    told.queue.pop(told, None)


def timers() -> list[Any]:
    """The timers set on the loop that can still fire."""
    loop: Any = asyncio.get_running_loop()
    return [handle for handle in loop._scheduled if not handle.cancelled()]


def test_deadlines_expire_exactly_when_they_are_due_and_in_order() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        for seconds in (3.0, 1.0, 2.0, 60.0, 1.0):
            watch(timeouts, seconds, lambda s=seconds: seen.append((s, loop.time())))
        await asyncio.sleep(100)
        assert seen == [(1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (60.0, 60.0)]

    run(main())


def test_an_attempt_that_ended_in_time_never_expires() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        early = watch(timeouts, 1.0, lambda: seen.append("early"))
        late = watch(timeouts, 2.0, lambda: seen.append("late"))
        done(early)
        assert not early.expired
        await asyncio.sleep(10)
        assert seen == ["late"]
        assert late.expired

    run(main())


def test_a_deadline_nearer_than_all_others_is_not_late() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        watch(timeouts, 60.0, lambda: seen.append(loop.time()))
        await asyncio.sleep(1)
        watch(timeouts, 0.5, lambda: seen.append(loop.time()))
        await asyncio.sleep(1)
        assert seen == [1.5]

    run(main())


def test_one_timer_serves_ten_thousand_deadlines() -> None:
    # scenario 76
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        chance = random.Random(7)
        delays = [chance.randrange(100_000, 50_000_000) / SECOND for _ in range(10_000)]
        for delay in delays:
            watch(timeouts, delay, lambda d=delay: seen.append((d, loop.time())))
        assert len(timers()) == 1
        await asyncio.sleep(60)
        assert [delay for delay, _ in seen] == sorted(delays)
        assert all(abs(at - delay) < 1e-6 for delay, at in seen)
        assert timers() == []

    run(main())


def test_one_that_ended_is_kept_by_nobody() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        kept = [watch(timeouts, 60.0, lambda: seen.append(1)) for _ in range(10)]
        ended = [weakref.ref(over(timeouts, 60.0)) for _ in range(1000)]
        assert [told() for told in ended] == [None] * 1000
        await asyncio.sleep(61)
        assert seen == [1] * len(kept)
        assert all(told.expired for told in kept)
        assert (timeouts._queues, timeouts._heap, timers()) == ({}, [], [])

    def over(timeouts: Timeouts, seconds: float) -> Told:
        told = watch(timeouts, seconds, lambda: None)
        done(told)
        return told

    run(main())


def test_limits_that_nobody_has_any_more_are_swept_out() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        kept = [watch(timeouts, 60.0 + at, lambda: seen.append(1)) for at in range(10)]
        for at in range(10_000):
            done(watch(timeouts, 60.0 - at / 1000, lambda: seen.append(0)))
            assert len(timeouts._queues) <= QUEUES
        assert len(timeouts._heap) == len(timeouts._queues)
        await asyncio.sleep(71)
        assert seen == [1] * len(kept)
        assert (timeouts._queues, timeouts._heap, timers()) == ({}, [], [])

    run(main())


def test_a_limit_that_was_empty_for_a_while_is_as_good_as_new() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        done(watch(timeouts, 10.0, lambda: seen.append(0.0)))
        await asyncio.sleep(5)
        watch(timeouts, 10.0, lambda: seen.append(loop.time()))
        await asyncio.sleep(100)
        watch(timeouts, 10.0, lambda: seen.append(loop.time()))
        await asyncio.sleep(100)
        assert seen == [15.0, 115.0]

    run(main())


def test_one_that_has_time_left_is_told_when_that_is_over() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        left = [2.5, 0.25, 0.0]
        watch(timeouts, 3.0, lambda: seen.append(("late", loop.time())), lambda: left.pop(0))
        watch(timeouts, 3.0, lambda: seen.append(("in time", loop.time())))
        await asyncio.sleep(100)
        assert seen == [("in time", 3.0), ("late", 5.75)]

    run(main())


def test_of_those_that_are_late_together_the_first_is_told_first() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []

        def begin(seconds: float) -> None:
            due = asyncio.get_running_loop().time() + seconds
            watch(timeouts, seconds, lambda: seen.append(due))

        begin(3)
        await asyncio.sleep(2.5)
        begin(3)
        begin(1.5)
        begin(9)
        late = [one.deadline for one in timeouts._due(6.0)]
        assert late == [3, 4, 5.5]
        assert [one.deadline for one in timeouts._due(12.0)] == [11.5]
        assert seen == []

    run(main())


def test_of_those_that_are_due_together_one_may_end_another() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        watch(timeouts, 1.0, lambda: done(second))
        second = watch(timeouts, 1.0, lambda: seen.append("second"))
        watch(timeouts, 1.0, lambda: seen.append("third"))
        await asyncio.sleep(10)
        assert seen == ["third"]
        assert not second.expired

    run(main())


def test_an_expiry_may_end_other_attempts_and_begin_new_ones() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        other = watch(timeouts, 1.0, lambda: seen.append("other"))
        # Entered after `other`, due before it.
        watch(timeouts, 0.9, lambda: (done(other), again()))

        def again() -> None:
            watch(timeouts, 0.5, lambda: seen.append(loop.time()))

        await asyncio.sleep(10)
        assert seen == [1.4]
        assert timers() == []

    run(main())


def test_after_close_nothing_expires() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        one = watch(timeouts, 1.0, lambda: seen.append(1))
        timeouts.close()
        assert timers() == []
        done(one)
        await asyncio.sleep(10)
        assert seen == []

    run(main())
