"""An event that was accepted starts its saga even where whoever emitted it dies at once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from perdure import Client, Engine, Saga, SagaContext

#: A process without the saga: it emits, and is killed before anything else.
EMITTER = """
import asyncio, os, signal, sys
import msgspec
from perdure import Client

class OrderPlaced(msgspec.Struct):
    id: str

async def main():
    async with Client(sys.argv[1]) as client:
        await client.emit(OrderPlaced("7"), idempotency_key="e7")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


class OrderPlaced(msgspec.Struct):
    id: str


@pytest.mark.rule("S-20", "S-23")
def test_an_accepted_event_outlives_the_process_that_emitted_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def note(ctx: SagaContext[OrderPlaced]) -> str:
        seen.append(ctx.payload)
        return "shipped"

    ship = Saga("ship", OrderPlaced).step("note", note).started_by(OrderPlaced)
    url = f"sqlite:///{tmp_path}/shop.db"

    async def known() -> None:
        async with Engine(url, [ship]):
            pass

    async def worked() -> dict[str, Any]:
        async with Engine(url, [ship]) as engine:
            return dict(await engine.get(ship, "e7").result())

    async def left() -> list[str]:
        async with Client(url) as client:
            return [f"{info.workflow}/{info.id}" async for info in client.runs()]

    asyncio.run(known())
    for _ in range(2):
        emitter = subprocess.run([sys.executable, "-c", EMITTER, url], timeout=60, check=False)
        assert emitter.returncode == -signal.SIGKILL
    assert asyncio.run(left()) == ["ship/e7"]
    assert asyncio.run(worked()) == {"note": "shipped"}
    assert seen == [OrderPlaced("7")]
