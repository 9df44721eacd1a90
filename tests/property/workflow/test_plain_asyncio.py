"""Programs of nothing but asyncio see the same in a workflow, replayed or not, as on asyncio's own
loop: the same outcomes in the same order at the same times, also when they are cancelled."""

from __future__ import annotations

import asyncio
from itertools import count
from random import Random
from typing import Any

import pytest

from perdure import Context, workflow
from perdure.kernel.code.loop import WorkflowTask
from perdure.kernel.run import GRACE
from perdure.model.durations import SECOND
from tests.property.workflow.programs import Op, Player
from tests.unit.kernel.code.board import NEW_YEAR, Board
from tests.virtual.loop import VirtualLoop

PROGRAMS = 300
STUCK: list[Any] = []
NODES = (
    "gather", "group", "timeout", "wait_for", "try", "finally", "spawn", "semaphore", "queue",
    "event", "race", "shield", "loop", "barrier", "lock", "agen", "uncancel", "nested", "callback",
)  # fmt: skip


class AsyncioPlayer(Player):
    """What asyncio has, and only that."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def do_nap(self, seconds: float) -> int:
        await asyncio.sleep(seconds)
        return round(asyncio.get_running_loop().time() * 1_000_000)

    async def do_yield(self, times: float) -> int:
        for _ in range(int(times)):
            await asyncio.sleep(0)
        return 0

    async def do_raise(self, number: float) -> int:
        raise RuntimeError(str(number))

    async def do_finally(self, seconds: float, branches: list[list[Op]]) -> int:
        try:
            return await self.all(branches[0])
        finally:
            await asyncio.sleep(seconds)
            self.seen.append("finally")

    async def do_barrier(self, seconds: float, branches: list[list[Op]]) -> int:
        barrier = asyncio.Barrier(len(branches))

        async def meet(branch: list[Op]) -> int:
            await self.all(branch)
            return await barrier.wait()

        try:
            async with asyncio.timeout(10 * seconds):
                return sum(await asyncio.gather(*map(meet, branches)))
        except TimeoutError:
            return -1

    async def do_lock(self, seconds: float, branches: list[list[Op]]) -> int:
        condition = asyncio.Condition()

        async def guarded(branch: list[Op]) -> int:
            async with condition:
                await self.all(branch)
                condition.notify_all()
                return 1

        return sum(await asyncio.gather(*map(guarded, branches)))

    async def do_agen(self, seconds: float, branches: list[list[Op]]) -> int:
        async def values() -> Any:
            try:
                for branch in branches:
                    yield await self.all(branch)
            finally:
                self.seen.append("closed")

        total = 0
        async for value in values():
            total += value
            if seconds > 10:
                break
        return total

    async def do_uncancel(self, seconds: float, branches: list[list[Op]]) -> int:
        task = asyncio.current_task()
        assert task is not None
        try:
            return await self.all(branches[0])
        except asyncio.CancelledError:
            self.seen.append(["cancelling", task.cancelling()])
            raise

    async def do_callback(self, seconds: float, branches: list[list[Op]]) -> int:
        def spoils(task: Any) -> None:
            self.seen.append("spoils")
            raise ValueError("nobody's")

        tasks = [asyncio.ensure_future(self.all(branch)) for branch in branches]
        for task in tasks:
            task.add_done_callback(spoils)
        tasks[-1].add_done_callback(lambda _: tasks[0].cancel())
        got = await asyncio.gather(*tasks, return_exceptions=True)
        return sum(value for value in got if isinstance(value, int))

    async def do_nested(self, seconds: float, branches: list[list[Op]]) -> int:
        try:
            async with asyncio.timeout(seconds) as outer:
                async with asyncio.timeout(seconds / 2):
                    return await self.all(branches[0])
        except TimeoutError:
            return int(outer.expired())


def program(random: Random, depth: int = 3) -> list[Op]:
    return [_operation(random, depth) for _ in range(random.randint(1, 3 if depth > 1 else 2))]


def _operation(random: Random, depth: int) -> Op:
    # Times that never meet: at one and the same moment a workflow takes one event after another.
    seconds = random.choice([1, 5, 20]) + round(random.random(), 5)
    leaves = ["nap", "nap", "nap", "nap", "yield", "raise"]
    kind = random.choice(leaves if depth <= 0 else [*leaves, *NODES])
    if kind in leaves:
        return (kind, seconds)
    return (kind, seconds, [program(random, depth - 1) for _ in range(random.randint(2, 3))])


async def watched(player: AsyncioPlayer, ops: list[Op]) -> None:
    try:
        await player.all(ops)
    except asyncio.CancelledError:
        player.seen.append("end: cancelled")
        raise
    except (TimeoutError, RuntimeError) as error:
        player.seen.append(f"end: {type(error).__name__}")
    else:
        player.seen.append("end")


def until_end(seen: list[Any]) -> list[Any]:
    """What is left behind goes on for itself. Some programs wait for what never comes."""
    ends = [number for number, one in enumerate(seen) if str(one).startswith("end")]
    return seen[: ends[0] + 1] if ends else seen


def on_asyncio(ops: list[Op], cancel: float | None) -> list[Any]:
    player = AsyncioPlayer()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: None)
        # asyncio cancels a group's tasks in the order of their addresses: here, of their making.
        places = count(1)
        loop.set_task_factory(
            lambda loop, made, **rest: WorkflowTask(next(places), made, loop=loop, **rest)
        )
        task = loop.create_task(watched(player, ops))
        if cancel is not None:
            loop.call_at(cancel, task.cancel)
        await asyncio.wait([task], timeout=10**6)

    loop = VirtualLoop()
    loop.run_until_complete(main())
    seen = until_end(list(player.seen))  # before what never ends is cancelled below, and says so
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=10**6))
    STUCK.extend(asyncio.all_tasks(loop))  # collected later, they would run on in a workflow
    loop.close()
    return seen


def in_a_workflow(ops: list[Op], cancel: float | None, reload: Any) -> list[Any]:
    players: list[AsyncioPlayer] = []

    @workflow(max_duration=None, name="asyncio")
    async def plays(ctx: Context) -> None:
        players.append(AsyncioPlayer())
        await watched(players[-1], ops)

    plays.grace = 10**9 * SECOND
    board = Board(plays)
    stop = None if cancel is None else NEW_YEAR + round(cancel * SECOND)
    while board.run.status == "running":
        if reload():
            board.reload()
        timers = {n: s.wake_at or 0 for n, s in board.open.items() if n != GRACE}
        if not timers and stop is None:
            break
        node = min(timers, key=timers.__getitem__, default="")
        if stop is not None and stop < timers.get(node, stop + 1):
            board.now, stop = stop, None
            board.cancel()
            continue
        board.fire(node)
    return until_end(players[-1].seen)


# What a program leaves behind on asyncio's loop may outlive it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("part", range(10))
def test_asyncio_in_a_workflow_is_asyncio(part: int) -> None:
    for number in range(PROGRAMS):
        seed = 10_000 * part + number
        random = Random(seed)
        ops = program(random)
        cancel = random.choice([None, random.uniform(0, 30)])
        chance = random.choice([0.0, 0.0, 0.5])
        expected = on_asyncio(ops, cancel)
        seen = in_a_workflow(ops, cancel, lambda: random.random() < chance)  # noqa: B023
        assert seen == expected, f"program of seed {seed}"
