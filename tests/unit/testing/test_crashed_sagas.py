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
