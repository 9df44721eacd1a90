"""A checkout: money and goods are reserved side by side, and given back when it fails."""

import sys
import time
from pathlib import Path

import msgspec

from perdure import Failure, Retry, Saga, SagaContext


class Order(msgspec.Struct):
    """What is bought. `to`: the country it is sent to."""

    id: str
    item: str
    cents: int
    to: str


class NotDelivered(Failure, kind="not-delivered", permanent=True):
    """No courier goes there, today or tomorrow."""


class Busy(Failure, kind="busy"):
    """The warehouse has no time; it will."""


def say(text: str) -> None:
    """What is done in the world. These services write a line each, and do the same once a key."""
    print(f"-> {text}", file=sys.stderr, flush=True)


async def check(ctx: SagaContext[Order]) -> None:
    if ctx.payload.cents <= 0:
        raise Failure("an order of nothing", kind="empty-order")


async def charge(ctx: SagaContext[Order]) -> str:
    say(f"charge {ctx.payload.cents} cents")
    return f"PAY-{ctx.payload.id}"


async def refund(ctx: SagaContext[Order]) -> None:
    say(f"refund {ctx.payload.cents} cents")


async def reserve(ctx: SagaContext[Order]) -> str:
    if ctx.attempt == 1:
        raise Busy("the warehouse counts its stock")
    say(f"reserve {ctx.payload.item}")
    ctx.set("shelf", "B4")
    return f"RES-{ctx.payload.id}"


async def release(ctx: SagaContext[Order]) -> None:
    say(f"release {ctx.payload.item} to shelf {ctx.get('shelf')}")


def ship(ctx: SagaContext[Order]) -> str:
    while Path("wait").exists():  # a courier who takes his time
        time.sleep(0.1)
    if ctx.payload.to == "Atlantis":
        raise NotDelivered(f"no courier goes to {ctx.payload.to}")
    say(f"ship {ctx.output('reserve')}, paid by {ctx.output('charge')}")
    return f"TRACK-{ctx.payload.id}"


checkout = (
    Saga("checkout", Order, max_duration="1h")
    .step("check", check)
    .step("charge", charge, undo=refund, undo_retry=5, depends_on=["check"])
    .step("reserve", reserve, undo=release, retry=Retry(3, initial="1s"), depends_on=["check"])
    .step("ship", ship, depends_on=["charge", "reserve"])
)
