"""What memory allows: the bare coroutines, awaited, and their outcomes kept in a dict."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec


async def awaited(fn: Callable[..., Coroutine[Any, Any, Any]], steps: int) -> float:
    """Steps a second when nothing is kept: one coroutine after another."""
    given = {"n": 0} if fn.__code__.co_argcount else {}
    begin = time.perf_counter()
    for _ in range(steps):
        await fn(**given)
    return steps / (time.perf_counter() - begin)


async def kept(fn: Callable[..., Coroutine[Any, Any, Any]], runs: int, steps: int) -> float:
    """Steps a second when every outcome is encoded and kept before the next step starts: the
    least that a journal in memory can be."""
    encode = msgspec.json.encode
    given = {"n": 0} if fn.__code__.co_argcount else {}
    journal: dict[tuple[int, int], bytes] = {}
    begin = time.perf_counter()
    for run in range(runs):
        for seq in range(steps):
            output = await fn(**given)
            journal[run, seq] = encode({"do": "CompleteTask", "node": seq, "output": output})
    return runs * steps / (time.perf_counter() - begin)
