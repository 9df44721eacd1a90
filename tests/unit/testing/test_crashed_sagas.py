"""crash_everywhere of a saga: its functions are steps like others, and its undos too."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Failure, Saga, SagaContext, step
from perdure.testing import crash_everywhere


@step
async def book(order: int) -> int:
    return order


async def charge(ctx: SagaContext[int]) -> str:
    ctx.set("card", ctx.payload)
    return "ch_1"


async def give_back(ctx: SagaContext[int]) -> None:
    assert (ctx.output("charge"), ctx.get("card")) == ("ch_1", ctx.payload)


async def unbook(ctx: SagaContext[int]) -> None: ...


async def ship(ctx: SagaContext[int]) -> None:
    raise Failure("nothing left", kind="out_of_stock")


CHECKOUT = (
    Saga("checkout", int)
    .step("charge", charge, undo=give_back)
    .step("book", book, undo=unbook)
    .step("ship", ship)
)


def test_a_saga_comes_out_the_same_wherever_it_is_killed() -> None:
    named = ["checkout.charge", "checkout.ship", "checkout.charge~undo", "checkout.book~undo"]
    report: Any = asyncio.run(crash_everywhere(CHECKOUT, 3, may_repeat=[*named, book]))
    assert report.repeated == dict.fromkeys([*named, "book"], 1), "each once: its record is durable"
    assert report.points >= 10


@pytest.mark.parametrize("forgotten", ["checkout.charge", "checkout.book~undo"])
def test_a_function_or_an_undo_that_may_not_be_repeated_is_told_by_its_name(forgotten: str) -> None:
    named = {"checkout.charge", "checkout.ship", "checkout.charge~undo", "checkout.book~undo"}
    with pytest.raises(AssertionError, match=f"step {forgotten} is done twice"):
        asyncio.run(crash_everywhere(CHECKOUT, 3, may_repeat=[*sorted(named - {forgotten}), book]))


def test_an_undo_that_fails_only_after_a_crash_is_told() -> None:
    """The failure of the run is the same; what was undone is not."""
    memory: dict[str, str] = {}

    async def pay(ctx: SagaContext[int]) -> None:
        memory["receipt"] = f"for {ctx.payload}"

    async def pay_back(ctx: SagaContext[int]) -> None:
        if "receipt" not in memory:
            raise Failure("it was known to another process")

    saga = Saga("forgetful", int).step("pay", pay, undo=pay_back).step("ship", ship)
    named = ["forgetful.pay", "forgetful.ship", "forgetful.pay~undo"]
    with pytest.raises(
        AssertionError, match=r'the run ends failed .*"undo_failed":\["pay"\].*"undo_failed":\[\]'
    ):
        asyncio.run(
            crash_everywhere(saga, 3, may_repeat=named, fakes=lambda engine: memory.clear())
        )


def test_what_a_failure_says_beside_its_message_is_compared() -> None:
    memory: list[int] = []

    async def fails(ctx: SagaContext[int]) -> None:
        memory.append(1)
        raise Failure("no", details={"so often": len(memory)})

    saga = Saga("counts", int).step("a", charge).step("b", fails, retry=2)
    with pytest.raises(AssertionError, match="so often"):
        asyncio.run(
            crash_everywhere(
                saga, 3, may_repeat=["counts.a", "counts.b"], fakes=lambda engine: memory.clear()
            )
        )
