"""Random workflow programs: what people write with asyncio and Context, drawn as data and run by
one interpreter. A program's result is the list of everything that it saw happen, in order."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from perdure import step
from perdure.flow.context import Context
from perdure.flow.signal import After, Channel, On, Signal
from perdure.flow.workflow import Workflow, workflow
from perdure.model.errors import Failure

SIGNALS = {name: Signal(name, int) for name in ("ok", "stop")}
CHANNELS = {name: Channel(name, int) for name in ("news", "work")}
KEYS = ("a", "b")
NAMES = (
    *SIGNALS, *CHANNELS, *(f"{name}[{key}]" for name in ("ok", "news") for key in KEYS),
)  # fmt: skip

Op = tuple[Any, ...]


@step(retry=2)
async def work(number: int) -> int:
    return number


@step
async def undo(number: int) -> int:
    return number


@workflow(max_duration=None)
async def other(ctx: Context, number: int) -> int:
    return number


def program(random: Random, depth: int = 3) -> list[Op]:
    """A few operations in sequence."""
    return [_operation(random, depth) for _ in range(random.randint(1, 3 if depth > 1 else 2))]


def _operation(random: Random, depth: int) -> Op:
    leaves = [
        "step",
        "step",
        "step",
        "sleep",
        "nap",
        "wait",
        "receive",
        "select",
        "now",
        "chance",
        "choose",
        "hear",
        "child",
        "child",
        "start",
    ]
    nodes = ["gather", "group", "timeout", "wait_for", "try", "finally", "spawn", "semaphore"]
    nodes += ["queue", "event", "race", "shield", "loop", "map", "any", "completed", "saga"]
    kind = random.choice(leaves if depth <= 0 else leaves + nodes)
    number = random.randint(1, 99)
    if kind in ("wait", "receive", "select"):
        return (kind, random.choice(tuple(SIGNALS if kind == "wait" else CHANNELS)),
                random.choice([0, 3, 30]))  # fmt: skip
    if kind in leaves:
        return (kind, number)
    branches = [program(random, depth - 1) for _ in range(random.randint(1, 3))]
    return (kind, random.choice([1, 5, 20]), branches)


class Player:
    """Runs a program inside a workflow."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.seen: list[Any] = []

    async def all(self, ops: list[Op]) -> int:
        total = 0
        for op in ops:
            total += await self.one(op)
        return total

    async def one(self, op: Op) -> int:
        try:
            value: int = await getattr(self, f"do_{op[0]}")(*op[1:])
        except (Failure, TimeoutError, RuntimeError) as error:
            self.seen.append([op[0], type(error).__name__])
            raise
        self.seen.append([op[0], value])
        return value

    # ------------------------------------------------------------------ leaves

    async def do_step(self, number: int) -> int:
        return await work(number)

    async def do_sleep(self, seconds: int) -> int:
        await self.ctx.sleep(seconds)
        return 0

    async def do_nap(self, seconds: int) -> int:
        await asyncio.sleep(seconds)
        return int(asyncio.get_running_loop().time())

    async def do_wait(self, name: str, timeout: int) -> int:
        return await self.ctx.wait(SIGNALS[name], timeout=timeout or None)

    async def do_receive(self, name: str, timeout: int) -> int:
        return await self.ctx.receive(CHANNELS[name], timeout=timeout or None)

    async def do_select(self, name: str, timeout: int) -> int:
        value = await self.ctx.select(
            On(SIGNALS["ok"], lambda v: v + 1000), CHANNELS[name], After(timeout, lambda: -1)
        )
        return int(value)

    async def do_choose(self, number: int) -> int:
        key = KEYS[number % 2]
        value = await self.ctx.select(
            CHANNELS["news"][key], On(SIGNALS["ok"][key], lambda v: v + 2000),
            After(number, lambda: -2), SIGNALS["stop"],
        )  # fmt: skip
        return int(value)

    async def do_hear(self, number: int) -> int:
        key = KEYS[number % 2]
        got = await asyncio.gather(
            self.ctx.wait(SIGNALS["ok"][key], timeout=number),
            self.ctx.receive(CHANNELS["news"][key], timeout=number),
            return_exceptions=True,
        )
        return sum(value for value in got if isinstance(value, int))

    async def do_now(self, number: int) -> int:
        return int(self.ctx.now().timestamp()) % 1000

    async def do_chance(self, number: int) -> int:
        await asyncio.sleep(0)
        return self.ctx.random.randint(0, number) + self.ctx.uuid().int % 10

    async def do_child(self, number: int) -> int:
        if number % 3:
            return await self.ctx.child(other, number)
        return await self.ctx.child(other, number, id=f"shared-{number}")

    async def do_start(self, number: int) -> int:
        return len(await self.ctx.spawn(other, number))

    # ------------------------------------------------------------------ nodes

    async def do_gather(self, number: int, branches: list[list[Op]]) -> int:
        got = await asyncio.gather(*map(self.all, branches), return_exceptions=number > 1)
        return sum(value for value in got if isinstance(value, int))

    async def do_group(self, number: int, branches: list[list[Op]]) -> int:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self.all(branch)) for branch in branches]
        except BaseExceptionGroup as errors:
            return -len(errors.exceptions)
        return sum(task.result() for task in tasks)

    async def do_timeout(self, seconds: int, branches: list[list[Op]]) -> int:
        async with asyncio.timeout(seconds):
            return await self.all(branches[0])

    async def do_wait_for(self, seconds: int, branches: list[list[Op]]) -> int:
        return await asyncio.wait_for(self.all(branches[0]), seconds)

    async def do_try(self, number: int, branches: list[list[Op]]) -> int:
        try:
            return await self.all(branches[0])
        except (Failure, TimeoutError, RuntimeError):
            return await self.all(branches[-1])

    async def do_finally(self, number: int, branches: list[list[Op]]) -> int:
        try:
            return await self.all(branches[0])
        finally:
            await undo(number)

    async def do_spawn(self, number: int, branches: list[list[Op]]) -> int:
        task = asyncio.create_task(self.all(branches[0]))
        rest = await self.all(branches[-1])
        if number == 1:
            task.cancel()
            return rest
        return rest + await task if number == 5 else rest

    async def do_semaphore(self, number: int, branches: list[list[Op]]) -> int:
        limit = asyncio.Semaphore(1)

        async def limited(branch: list[Op]) -> int:
            async with limit:
                return await self.all(branch)

        got = await asyncio.gather(*map(limited, branches), return_exceptions=True)
        return len(got)

    async def do_queue(self, number: int, branches: list[list[Op]]) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue(1)

        async def produce() -> None:
            for branch in branches:
                try:
                    await queue.put(await self.all(branch))
                except (Failure, TimeoutError, RuntimeError):
                    await queue.put(-1)

        producer = asyncio.create_task(produce())
        total = 0
        for _ in branches:
            total += await queue.get()
        await producer
        return total

    async def do_event(self, number: int, branches: list[list[Op]]) -> int:
        event = asyncio.Event()

        async def work_and_tell() -> int:
            try:
                return await self.all(branches[0])
            finally:
                event.set()

        task = asyncio.create_task(work_and_tell())
        await event.wait()
        return await task

    async def do_race(self, number: int, branches: list[list[Op]]) -> int:
        tasks = [asyncio.create_task(self.all(branch)) for branch in branches]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        winners = [index for index, task in enumerate(tasks) if task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return winners[0]

    async def do_shield(self, seconds: int, branches: list[list[Op]]) -> int:
        task = asyncio.create_task(self.all(branches[0]))
        try:
            return await asyncio.wait_for(asyncio.shield(task), seconds)
        except TimeoutError:
            return await task

    async def do_loop(self, number: int, branches: list[list[Op]]) -> int:
        for _ in range(2):
            await self.all(branches[0])
        return 2

    async def do_map(self, number: int, branches: list[list[Op]]) -> int:
        got = await self.ctx.map(
            self.all, branches, concurrency=1 + number % 2, on_failure="collect"
        )
        return sum(value for value in got if isinstance(value, int))

    async def do_any(self, number: int, branches: list[list[Op]]) -> int:
        place, _ = await self.ctx.wait_any(map(self.all, branches))
        return place

    async def do_completed(self, number: int, branches: list[list[Op]]) -> int:
        got = [value async for value in self.ctx.as_completed(map(self.all, branches))]
        return sum(place * value for place, value in enumerate(got))

    async def do_saga(self, number: int, branches: list[list[Op]]) -> int:
        async with self.ctx.saga() as saga:
            await saga.run(work, number, undo=undo)
            saga.undo(undo, number)
            return await self.all(branches[0])


def workflow_of(ops: list[Op], lives: int = 1) -> Workflow[Any, Any]:
    """A workflow that runs the program so many times, and returns what it saw the last time."""

    @workflow(max_duration="30d", name="random-program")
    async def play(ctx: Context, life: int | None) -> list[Any]:
        player = Player(ctx)
        try:
            await player.all(ops)
        except (Failure, TimeoutError, RuntimeError) as error:
            player.seen.append(["ended", type(error).__name__])
        if (life or 1) < lives:
            ctx.continue_as_new((life or 1) + 1)
        return player.seen

    return play
