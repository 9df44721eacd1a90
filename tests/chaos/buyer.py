"""A process that asks for what others ask for at the same time, by the same idempotency keys.

Run as `python -m tests.chaos.buyer DB LOG`; says "up", waits for a line, then prints its outcomes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from perdure import Engine, Failure, RunFailed, Saga, SagaContext

KEYS = 12


async def main(db: str, log: int) -> list[Any]:
    def note(ctx: SagaContext[int]) -> None:
        os.write(log, f"{ctx.run_id} {ctx.node}\n".encode())

    async def charge(ctx: SagaContext[int]) -> str:
        note(ctx)
        await asyncio.sleep(0.05)
        return f"{os.getpid()} charged {ctx.payload}"

    async def refund(ctx: SagaContext[int]) -> None:
        note(ctx)

    async def ship(ctx: SagaContext[int]) -> None:
        note(ctx)
        if ctx.payload % 2:
            raise Failure(f"{os.getpid()} declined {ctx.payload}", kind="no_shipping")

    saga = Saga("buy", int).step("charge", charge, undo=refund).step("ship", ship)
    async with Engine(f"sqlite:///{db}", [saga]) as engine:

        async def outcome(n: int) -> Any:
            try:
                return dict(await engine.run(saga, n, idempotency_key=f"k{n}"))
            except RunFailed as failed:
                return [str(failed), failed.compensated]

        sys.stdout.write("up\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)
        found = await asyncio.gather(*map(outcome, range(KEYS)))
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)  # its runs are others' outcomes, too
        return found


if __name__ == "__main__":
    told = os.open(Path(sys.argv[2]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    asyncio.run(main(sys.argv[1], told))
