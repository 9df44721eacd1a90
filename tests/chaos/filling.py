"""A graph that writes much: each of its steps leaves a large output."""

from __future__ import annotations

import asyncio
from typing import Final

from perdure import step
from tests.chaos.waiting import LOGS
from tests.virtual.engines import graph, task

NODES: Final = 10
LARGE: Final = 16_000


@step
async def fill(n: int) -> str:
    LOGS[0].note()
    await asyncio.sleep(0.01)
    return str(n % 10) * LARGE


FILLING: Final = graph(
    "filling",
    [task(f"n{i}", "fill", {"n": "{{input.n}}"}) for i in range(NODES)],
    output={"last": f"{{{{tasks.n{NODES - 1}.output}}}}"},
)
