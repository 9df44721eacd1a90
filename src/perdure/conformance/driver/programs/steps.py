"""The steps that the kit's programs take, each with an effect that is seen or an end of its own."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from perdure.conformance.driver.effects import did, gate_of
from perdure.flow.step import step
from perdure.model.errors import Failure, Permanent
from perdure.model.policy import Retry
from perdure.model.step_context import current_step


class Declined(Failure, kind="kit-declined", permanent=True):
    """A failure that is to come back as itself."""


_QUICK: Final = Retry(4, initial=0.005, factor=1)


@step
async def kit_note(text: str) -> str:
    """Does and returns what it is told."""
    did(text)
    return text


@step
def kit_plain(text: str) -> str:
    """A plain function, in a thread."""
    did(text)
    return text


@step(retry=_QUICK)
async def kit_shaky(fails: int) -> int:
    """Fails that often, then returns the attempt."""
    attempt = current_step().attempt
    did(f"attempt {attempt}")
    if attempt <= fails:
        raise ValueError("shaky")
    return attempt


@step(retry=_QUICK)
async def kit_keyed(fails: int) -> None:
    """Tells the key that a service would see."""
    did(current_step().idempotency_key)
    if current_step().attempt <= fails:
        raise ValueError("again")


@step(retry=_QUICK)
async def kit_permanent() -> None:
    """Fails for good at its first attempt."""
    did("permanent")
    raise Permanent(ValueError("hopeless"))


@step(retry=Retry(4, initial=0.005, never_on=KeyError))
async def kit_never() -> None:
    """Fails with what its policy does not repeat."""
    did("never")
    raise KeyError("no")


@step
async def kit_declined() -> None:
    """Fails as its own class."""
    did("declined")
    raise Declined("no funds", details={"code": 51})


@step(timeout=None)
async def kit_held(gate: str) -> str:
    """Takes as long as its gate is closed."""
    did(f"began {gate}")
    await gate_of(gate)
    did(f"ended {gate}")
    return gate


@step(timeout=0.02)
async def kit_slow() -> None:
    """Takes longer than it may."""
    did("slow")
    await asyncio.sleep(30)


@step(retry=Retry(3, initial=0))
async def kit_at_once() -> int:
    """Is to be repeated without a delay."""
    did(f"attempt {current_step().attempt}")
    if current_step().attempt < 3:
        raise ValueError("again")
    return current_step().attempt


@step
async def kit_echo(value: Any) -> Any:
    """Gives back what it was given."""
    return value


@step
async def kit_undo(what: str) -> None:
    """Takes something back."""
    did(f"undone {what}")
