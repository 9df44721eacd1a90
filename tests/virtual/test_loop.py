"""Virtual time: it passes at once, in order, and only when nothing else is left to do."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.virtual.loop import BEGIN, Deadlock, VirtualClock, VirtualLoop, run


def test_days_pass_at_once_and_in_order() -> None:
    seen: list[str] = []

    async def wait(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        seen.append(name)

    async def main() -> float:
        days = 86_400.0
        await asyncio.gather(wait("c", 3 * days), wait("a", 1), wait("b", days))
        return asyncio.get_running_loop().time()

    assert run(main()) == 3 * 86_400.0
    assert seen == ["a", "b", "c"]


def test_time_stands_still_while_something_is_ready() -> None:
    async def main() -> float:
        late = asyncio.ensure_future(asyncio.sleep(0.001))
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not late.done()
        late.cancel()
        return asyncio.get_running_loop().time()

    assert run(main()) == 0.0


def test_the_clock_goes_with_the_loop() -> None:
    async def main() -> list[int]:
        clock = VirtualClock()
        times = [clock.now()]
        await asyncio.sleep(0.25)
        times.append(clock.now())
        return times

    assert run(main()) == [BEGIN, BEGIN + 250_000]


def test_timeouts_expire_in_virtual_time() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()

    run(main())


def test_a_thread_is_waited_for_where_no_timer_is_set() -> None:
    async def main() -> int:
        return await asyncio.to_thread(lambda: 42)

    assert run(main()) == 42


def test_patience_waits_for_a_thread_before_it_jumps() -> None:
    gate = threading.Event()

    async def main() -> int:
        work = asyncio.ensure_future(asyncio.to_thread(gate.wait))
        asyncio.get_running_loop().call_soon(gate.set)
        async with asyncio.timeout(1):
            await work
        return 1

    assert run(main(), patience=20.0) == 1


def test_a_deadlock_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.testing.virtual.DEADLOCK", 0.01)
    loop = VirtualLoop()
    try:
        with pytest.raises(Deadlock):
            loop.run_until_complete(_for_ever())
    finally:
        loop.run_until_complete(_cancel_all())
        loop.close()


async def _for_ever() -> None:
    await asyncio.get_running_loop().create_future()


async def _cancel_all() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
        await asyncio.wait([task])
