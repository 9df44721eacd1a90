"""The worker that is killed while its sagas go forward, come to rest, and undo what they did.

Every execution is first written to a log that survives the process, with what it found around it.
Run as `python -m tests.chaos.sagas` with a Launch as JSON; says "up" once its engine is open.
"""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import Any

import msgspec

from perdure import Engine, Failure, Permanent, Retry, RunFinished, Saga, SagaContext
from perdure.client.run import Run
from tests.chaos.program import LAUNCH, LOG, Execution, Launch, launched, up

#: Some outputs stand apart from their rows.
LARGE = 6000


class Order(msgspec.Struct):
    n: int
    text: str


class Seen(Execution, frozen=True):
    """What one execution found. `gave`: what the undone step gave, unless its end is unknown."""

    payload: int
    text: str
    tenant: str | None
    last: str | None
    gave: str | dict[str, str] | None


def order_of(n: int) -> Order:
    return Order(n, f"order {n}" + "!" * (LARGE if n % 4 == 0 else 0))


def given(n: int, step: str) -> str:
    return f"{step} of {n}" + "." * (LARGE if n % 3 == 0 else 0)


def note(ctx: SagaContext[Order]) -> None:
    """Write down, durably, that this is being executed."""
    gave = None
    if ctx.node.endswith("~undo"):
        with suppress(Permanent):  # its end is not known: the test knows when that may be
            gave = ctx.output(ctx.node.removesuffix("~undo"))
    line = Seen(
        LAUNCH[0], f"{ctx.workflow}/{ctx.run_id}", ctx.node, ctx.attempt - 1, ctx.idempotency_key,
        ctx.payload.n, ctx.payload.text, ctx.get("tenant"), ctx.get("last"), gave,
    )  # fmt: skip
    os.write(LOG[0], msgspec.json.encode(line) + b"\n")
    os.fsync(LOG[0])


async def work(ctx: SagaContext[Order]) -> str:
    note(ctx)
    await asyncio.sleep(ctx.payload.n % 5 / 200)
    ctx.set("last", ctx.node)
    return given(ctx.payload.n, ctx.node)


def thread(ctx: SagaContext[Order]) -> str:
    note(ctx)
    time.sleep(ctx.payload.n % 7 / 200)
    ctx.set("last", ctx.node)
    return given(ctx.payload.n, ctx.node)


async def slow(ctx: SagaContext[Order]) -> str:
    """Under way when the other branch fails."""
    note(ctx)
    await asyncio.sleep(0.05 + ctx.payload.n % 4 / 20)
    ctx.set("last", ctx.node)
    return given(ctx.payload.n, ctx.node)


async def hold(ctx: SagaContext[Order]) -> None:
    """Ends only when it is asked to."""
    note(ctx)
    await asyncio.Event().wait()


async def declined(ctx: SagaContext[Order]) -> None:
    note(ctx)
    await asyncio.sleep(0.01)
    raise Failure(f"declined: {ctx.payload.n}", kind="declined")


async def no_answer(ctx: SagaContext[Order]) -> None:
    """The first attempt is never answered, the second one is declined."""
    note(ctx)
    await asyncio.sleep(10 if ctx.attempt == 1 else 0.01)
    raise Failure(f"declined: {ctx.payload.n}", kind="declined")


async def unsayable(ctx: SagaContext[Order]) -> float:
    note(ctx)
    await asyncio.sleep(0.01)
    return float("nan")


async def undo(ctx: SagaContext[Order]) -> None:
    note(ctx)
    await asyncio.sleep(ctx.payload.n % 3 / 100)


def undo_thread(ctx: SagaContext[Order]) -> None:
    note(ctx)
    time.sleep(ctx.payload.n % 3 / 100)


async def undo_at_last(ctx: SagaContext[Order]) -> None:
    note(ctx)
    if ctx.attempt < 3:
        raise Failure("the bank is busy")


async def closed(ctx: SagaContext[Order]) -> None:
    note(ctx)
    raise Failure("the bank is closed", kind="closed")


QUICKLY = Retry(3, initial=0.02)


def saga(name: str, **options: Any) -> Saga[Order]:
    return Saga(name, Order, **options).step("a", work, undo=undo)


SAGAS = (
    saga("succeeds").step("b", thread, undo=undo_thread).step("c", work, undo=undo),
    saga("fails")
    .step("b", thread, undo=undo_thread)
    .step("gift", work, undo=undo, when=lambda order: order.n % 2 == 0)
    .step("c", work, undo=undo_at_last, undo_retry=QUICKLY)
    .step("d", declined),
    saga("parallel")
    .step("b", slow, undo=undo, depends_on=["a"])
    .step("c", thread, undo=undo_thread, depends_on=["a"])
    .step("d", declined, depends_on=["c"]),
    saga("hurried", on_failure="cancel")
    .step("b", hold, undo=undo, depends_on=["a"])
    .step("d", declined, depends_on=["a"]),
    saga("stuck")
    .step("b", work, undo=closed, undo_retry=QUICKLY)
    .step("c", thread, undo=undo_thread)
    .step("d", declined),
    saga("canceled").step("b", work, undo=undo).step("c", hold, undo=undo),
    saga("late", max_duration="300ms").step("b", hold, undo=undo, undo_unknown=False),
    saga("doubtful").step("d", no_answer, undo=undo, timeout="50ms", retry=Retry(2, initial=0.02)),
    saga("unsaid").step("d", unsayable, undo=undo),
)


async def play(engine: Engine, name: str, id: str, n: int) -> None:
    run: Run[Any] = await engine.start(
        name, order_of(n), id=id, if_exists="join", metadata={"tenant": f"t{n}"}
    )
    if name == "canceled":
        await asyncio.sleep(n % 6 / 25)
        with suppress(RunFinished):
            await run.cancel(f"enough of {n}")
    with suppress(Exception):
        await run.result()


async def main(launch: Launch) -> None:
    async with Engine(f"sqlite:///{launch.db}?sync={launch.sync}", SAGAS, grace=0) as engine:
        up()
        await asyncio.gather(*(play(engine, *one) for one in launch.runs))


if __name__ == "__main__":
    launched(main)
