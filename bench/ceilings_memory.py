"""What memory allows: bare coroutines, awaited, and their outcomes kept in a dict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

Fn = Callable[..., Coroutine[Any, Any, Any]]


async def kept(fn: Fn, runs: int, steps: int) -> float:
    """Steps a second of processor time when every outcome is encoded and kept before the next
    step starts: the least that a journal in memory can be."""
    encode = msgspec.json.encode
    given = {"n": 0} if fn.__code__.co_argcount else {}
    journal: dict[tuple[int, int], bytes] = {}
    begin = time.process_time()
    for run in range(runs):
        for seq in range(steps):
            output = await fn(**given)
            journal[run, seq] = encode({"do": "CompleteTask", "node": seq, "output": output})
    return runs * steps / (time.process_time() - begin)


async def task_cost(rounds: int = 20, tasks: int = 500) -> float:
    """µs of creating and awaiting an asyncio task, the quickest of several rounds: a measure of
    the machine."""

    async def nothing() -> None:
        pass

    best = float("inf")
    for _ in range(rounds):
        begin = time.process_time()
        for _ in range(tasks):
            await asyncio.create_task(nothing())
        best = min(best, time.process_time() - begin)
    return best / tasks * 1e6
