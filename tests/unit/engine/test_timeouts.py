"""Timeouts: many deadlines, one timer; each expires in its time and order, or never."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from perdure.engine.timeouts import Timeouts
from tests.virtual.loop import run


def timers() -> list[Any]:
    """The timers set on the loop that can still fire."""
    loop: Any = asyncio.get_running_loop()
    return [handle for handle in loop._scheduled if not handle.cancelled()]


def test_deadlines_expire_exactly_when_they_are_due_and_in_order() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        for seconds in (3.0, 1.0, 2.0, 60.0, 1.0):
            timeouts.watch(seconds, lambda s=seconds: seen.append((s, loop.time())))
        await asyncio.sleep(100)
        assert seen == [(1.0, 1.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (60.0, 60.0)]

    run(main())


def test_an_attempt_that_ended_in_time_never_expires() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        early = timeouts.watch(1.0, lambda: seen.append("early"))
        late = timeouts.watch(2.0, lambda: seen.append("late"))
        timeouts.done(early)
        assert not early.expired
        await asyncio.sleep(10)
        assert seen == ["late"]
        assert late.expired

    run(main())


def test_a_deadline_nearer_than_all_others_is_not_late() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        timeouts.watch(60.0, lambda: seen.append(loop.time()))
        await asyncio.sleep(1)
        timeouts.watch(0.5, lambda: seen.append(loop.time()))
        await asyncio.sleep(1)
        assert seen == [1.5]

    run(main())


def test_one_timer_serves_ten_thousand_deadlines() -> None:
    # scenario 76
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        chance = random.Random(7)
        delays = [chance.uniform(0.1, 50) for _ in range(10_000)]
        for delay in delays:
            timeouts.watch(delay, lambda d=delay: seen.append((d, loop.time())))
        assert len(timers()) == 1
        await asyncio.sleep(60)
        assert [delay for delay, _ in seen] == sorted(delays)
        assert all(abs(at - delay) < 1e-6 for delay, at in seen)
        assert timers() == []

    run(main())


def test_marks_of_what_ended_are_swept_out() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        kept = [timeouts.watch(60.0, lambda: seen.append(1)) for _ in range(10)]
        for _ in range(10_000):
            timeouts.done(timeouts.watch(60.0, lambda: seen.append(0)))
            assert len(timeouts._heap) < 1000
        await asyncio.sleep(61)
        assert seen == [1] * len(kept)
        assert all(watch.expired for watch in kept)

    run(main())


def test_an_expiry_may_end_other_attempts_and_begin_new_ones() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timeouts, seen = Timeouts(), []
        other = timeouts.watch(1.0, lambda: seen.append("other"))
        # Entered after `other`, due before it.
        timeouts.watch(0.9, lambda: (timeouts.done(other), again()))

        def again() -> None:
            timeouts.watch(0.5, lambda: seen.append(loop.time()))

        await asyncio.sleep(10)
        assert seen == [1.4]
        assert timers() == []

    run(main())


def test_after_close_nothing_expires() -> None:
    async def main() -> None:
        timeouts, seen = Timeouts(), []
        watch = timeouts.watch(1.0, lambda: seen.append(1))
        timeouts.close()
        assert timers() == []
        timeouts.done(watch)
        await asyncio.sleep(10)
        assert seen == []

    run(main())
