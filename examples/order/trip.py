"""The saga of the demo: a trip that is booked step by step, and cannot be paid in the end.

Each step has its undo beside it. The agencies that do the real work keep a log of their own, and do
each thing once for a key, however often they are asked.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from perdure import Permanent, Saga, SagaContext


def book(ctx: SagaContext[str]) -> str:
    """Book what the step is named after."""
    ask(ctx, "booked", ctx.node, 0.3)
    return f"{ctx.node} to {ctx.payload}"


def cancel_flight(ctx: SagaContext[str]) -> None:
    """Undo the flight."""
    ask(ctx, "canceled", "flight", 1.0)


def cancel_hotel(ctx: SagaContext[str]) -> None:
    """Undo the hotel."""
    ask(ctx, "canceled", "hotel", 1.0)


def cancel_car(ctx: SagaContext[str]) -> None:
    """Undo the car."""
    ask(ctx, "canceled", "car", 1.0)


def pay(ctx: SagaContext[str]) -> None:
    """Fails for good."""
    raise Permanent(ValueError("the card is declined"))


trip = (
    Saga("trip", str)
    .step("flight", book, undo=cancel_flight)
    .step("hotel", book, undo=cancel_hotel)
    .step("car", book, undo=cancel_car)
    .step("pay", pay)
)


def ask(ctx: SagaContext[str], what: str, thing: str, seconds: float) -> None:
    """Ask an agency, which does it once for a key, half way through the time that it takes."""
    note(asked=what, thing=thing, key=ctx.idempotency_key)
    time.sleep(seconds / 2)
    done = Path("agencies", ctx.idempotency_key)
    done.parent.mkdir(exist_ok=True)
    try:
        done.touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        note(did=what, thing=thing, key=ctx.idempotency_key)
    time.sleep(seconds / 2)


def note(**line: Any) -> None:
    """The agencies' log, one JSON object a line."""
    with Path("agencies.log").open("a", encoding="utf-8") as log:
        log.write(json.dumps(line) + "\n")
