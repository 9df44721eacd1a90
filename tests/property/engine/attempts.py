"""What attempts may do to the task they begin in; graphs of steps that do it, and what is to come
of them, worked out beforehand."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import msgspec

from perdure.flow.step import step
from perdure.graph.definition import Graph
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.virtual.engines import graph, task

#: How often each attempt was made: run, node, number.
made: Counter[tuple[str, str, int]] = Counter()


class Odd(BaseException):
    """No Exception at all."""


def _task() -> asyncio.Task[Any]:
    task = asyncio.current_task()
    assert task is not None
    return task


def _raising(error: BaseException, seconds: float = -1) -> Callable[[], Awaitable[None]]:
    async def raises() -> None:
        await _waiting(seconds)()
        raise error

    return raises


def _waiting(seconds: float) -> Callable[[], Awaitable[None]]:
    async def waits() -> None:
        if seconds >= 0:
            await asyncio.sleep(seconds)

    return waits


async def _cancels() -> None:
    _task().cancel()


async def _cancels_and_fails() -> None:
    _task().cancel()
    raise ValueError("cancelled and failed")


async def _waits_and_cancels() -> None:
    await asyncio.sleep(0.1)
    _task().cancel()


async def _waits_cancels_and_fails() -> None:
    await asyncio.sleep(0)
    await _cancels_and_fails()


async def _takes_it_back() -> None:
    _task().cancel()
    _task().uncancel()


async def _is_cancelled() -> None:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    await future


async def _blocks() -> None:
    loop: Any = asyncio.get_running_loop()
    loop._virtual += 0.02


#: What an attempt does, and whether it ends well.
DEEDS: dict[str, tuple[Callable[[], Awaitable[None]], bool]] = {
    "nothing": (_waiting(-1), True),
    "gives way": (_waiting(0), True),
    "waits": (_waiting(0.5), True),
    "waits long": (_waiting(20), True),
    "blocks": (_blocks, True),
    "cancels": (_cancels, True),
    "takes it back": (_takes_it_back, True),
    "waits and cancels": (_waits_and_cancels, True),
    "fails": (_raising(ValueError("failed")), False),
    "fails late": (_raising(ValueError("failed late"), 1), False),
    "is odd": (_raising(Odd("odd")), False),
    "closes": (_raising(GeneratorExit("closed")), False),
    "stops": (_raising(StopIteration("stopped")), False),
    "says it was cancelled": (_raising(asyncio.CancelledError("so it says")), False),
    "says so late": (_raising(asyncio.CancelledError("so it says"), 0), False),
    "is cancelled": (_is_cancelled, False),
    "cancels and fails": (_cancels_and_fails, False),
    "waits, cancels and fails": (_waits_cancels_and_fails, False),
}


@step(retry=Retry(2, initial=1))
async def do(name: str, deeds: list[str]) -> str:
    """The deed of this attempt."""
    me = current_step()
    made[f"{me.workflow}/{me.run_id}", me.node, me.attempt] += 1
    await DEEDS[deeds[me.attempt - 1]][0]()
    return name


@step
async def cancels_later(seconds: float) -> None:
    """Leaves behind what cancels its task, whoever's attempt runs in it then."""
    asyncio.get_running_loop().call_later(seconds, _task().cancel)


#: Most attempts do nothing much: what a few do is to meet many others.
_MANY = ["nothing"] * 12 + ["gives way"] * 4 + [*DEEDS]
ATTEMPTS = 2


class Plan(msgspec.Struct):
    """A graph, and how each run of it ends where nobody cancels it: its output, None = it fails;
    and how many attempts each of its nodes needs for that."""

    graph: Graph
    output: dict[str, str] | None
    attempts: dict[str, int]


def planned(name: str, random: Random) -> Plan:
    """Steps in a line, and behind the first of them some, or many, side by side."""
    line = [f"n{n}" for n in range(random.choice([*range(1, 10), 80]))]
    fan = [f"w{n}" for n in range(random.choice([0, 0, 1, 5, 70]))]
    choice = random.choice([_MANY, _MANY, ["nothing"]])
    deeds = {id: random.choices(choice, k=ATTEMPTS) for id in line + fan}
    nodes = [task(id, "do", {"name": id, "deeds": deeds[id]}) for id in deeds]
    edges = [f"{a} {b}" for a, b in itertools.pairwise(line)] + [f"{line[0]} {id}" for id in fan]
    attempts: dict[str, int] = {}
    failed = set()
    for id, kinds in deeds.items():
        before = line[line.index(id) - 1] if id in line[1:] else line[0] if id in fan else None
        if before is not None and (before in failed or before not in attempts):
            continue
        well = [n for n, deed in enumerate(kinds, 1) if DEEDS[deed][1]]
        attempts[id] = well[0] if well else ATTEMPTS
        if not well:
            failed.add(id)
    leaves = fan + (line[-1:] if len(line) > 1 or not fan else [])
    return Plan(graph(name, nodes, edges), None if failed else {n: n for n in leaves}, attempts)
