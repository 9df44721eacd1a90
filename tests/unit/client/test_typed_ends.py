"""What goes into a workflow and comes out of it has the types of its function."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

import perdure
from perdure import (
    Canceled,
    Channel,
    Client,
    Context,
    DefinitionError,
    Engine,
    Failure,
    InvalidRequest,
    NotFound,
    RunFailed,
    Signal,
    TimedOut,
    step,
    workflow,
)
from perdure.stores.memory import MemoryStore
from perdure.stores.port import RunQuery


@dataclass
class Order:
    id: str
    total: int


class Receipt(msgspec.Struct):
    order: Order
    paid: int


@dataclass
class Approve:
    by: str


@dataclass
class Reject:
    why: str


class CardDeclined(Failure, kind="declined-at-the-ends", permanent=True): ...


decision = Signal("decision", Approve | Reject)
numbers = Channel("numbers", int)


@workflow(max_duration="1h")
async def pay(ctx: Context, order: Order) -> Receipt:
    return Receipt(order, order.total)


@workflow(max_duration="1h")
async def nothing(ctx: Context) -> int:
    return 1


@workflow(max_duration="1h")
async def three(ctx: Context, n: int = 3) -> int:
    return n


@workflow(max_duration="1h")
async def maybe(ctx: Context, n: int | None) -> int | None:
    return n


@workflow(max_duration="1h")
async def decide(ctx: Context) -> Approve | Reject:
    return await ctx.wait(decision["a"])


@workflow(max_duration="1h")
async def add(ctx: Context) -> int:
    return await ctx.receive(numbers) + await ctx.receive(numbers)


@step
async def decline() -> None:
    raise CardDeclined("no funds", details={"code": 51})


@step
async def break_down() -> None:
    raise ValueError("broken")


@workflow(max_duration="1h")
async def declined(ctx: Context) -> None:
    await decline()


@workflow(max_duration="1h")
async def broken(ctx: Context) -> None:
    await break_down()


@workflow(max_duration="50ms")
async def late(ctx: Context) -> None:
    await ctx.sleep("1h")


def played(case: Callable[[Engine], Awaitable[None]]) -> None:
    async def play() -> None:
        async with Engine("memory:") as engine:
            await case(engine)

    asyncio.run(play())


async def ids(client: Client) -> list[str]:
    return [row.id for row in await client._store.find(RunQuery())]


@pytest.mark.rule("W-19")
def test_the_result_is_of_the_type_that_the_function_returns() -> None:
    async def case(engine: Engine) -> None:
        expected = Receipt(Order("1", 5), 5)
        run = await engine.start(pay, Order("1", 5), id="1")
        assert await run.result() == expected
        assert await engine.get(pay, "1").result() == expected
        assert await engine.run(pay, Order("2", 5)) == Receipt(Order("2", 5), 5)

    played(case)


def test_by_name_the_result_is_what_json_makes_it() -> None:
    async def case(engine: Engine) -> None:
        await engine.run(pay, Order("1", 5), id="1")
        plain = {"order": {"id": "1", "total": 5}, "paid": 5}
        assert await engine.get("pay", "1").result() == plain

    played(case)


def test_an_input_that_the_function_cannot_take_is_refused_with_its_path_and_nothing_written() -> (
    None
):
    # scenario 15
    async def case(engine: Engine) -> None:
        wrong: Any = {"id": "1", "total": "much"}
        with pytest.raises(InvalidRequest, match=r"input of workflow pay: .*`\$\.total`"):
            await engine.start(pay, wrong, id="1")
        with pytest.raises(InvalidRequest, match="pay needs an input, and none was given"):
            await engine.start(pay, id="1")  # type: ignore[call-overload]
        with pytest.raises(InvalidRequest, match="nothing takes no input"):
            await engine.start(nothing, 3, id="1")  # type: ignore[arg-type]
        assert await ids(engine) == []

    played(case)


def test_a_client_that_does_not_work_checks_inputs_as_an_engine_does() -> None:
    async def case() -> None:
        async with Client("memory:") as client:
            with pytest.raises(InvalidRequest, match="workflow pay"):
                await client.start(pay, {"id": "1"}, id="1")  # type: ignore[misc]
            assert await ids(client) == []

    asyncio.run(case())


def test_no_input_is_the_default_or_null_where_the_function_has_that() -> None:
    async def case(engine: Engine) -> None:
        assert await engine.run("three") == 3
        assert await engine.run(three, 4) == 4
        assert await engine.run(maybe, None) is None
        assert await engine.run(nothing) == 1

    async def by_name(engine: Engine) -> None:
        async with Engine(MemoryStore(), [three, nothing]) as other:
            assert await other.run("three") == 3

    played(by_name)

    async def registered() -> None:
        async with Engine("memory:", [three]) as engine:
            await case(engine)

    asyncio.run(registered())


def test_a_signal_s_value_is_checked_before_it_is_sent() -> None:
    async def case(engine: Engine) -> None:
        run = await engine.start(decide, id="1")
        wrong: Any = {"by": 3}
        with pytest.raises(InvalidRequest, match=r"signal decision: .* at `\$\.by`"):
            await run.signal(decision["a"], wrong)
        await run.signal(decision["b"], Reject("another mailbox"))
        await run.signal(decision["a"], Approve("ann"))
        assert await run.result() == Approve("ann")

    played(case)


def test_messages_of_a_channel_are_checked_too_and_a_name_takes_anything() -> None:
    async def case(engine: Engine) -> None:
        run = await engine.start(add, id="1")
        wrong: Any = "3"
        with pytest.raises(InvalidRequest, match="signal numbers"):
            await run.signal(numbers, wrong)
        await run.signal(numbers, 3)
        await run.signal("numbers", 4)
        assert await run.result() == 7

    played(case)


@pytest.mark.rule("W-42")
def test_a_failure_comes_back_as_its_own_class() -> None:
    async def case(engine: Engine) -> None:
        with pytest.raises(CardDeclined, match="no funds") as caught:
            await engine.run(declined)
        assert (caught.value.permanent, caught.value.details) == (True, {"code": 51})

    played(case)


def test_any_other_failure_is_the_run_s_with_its_kind() -> None:
    async def case(engine: Engine) -> None:
        with pytest.raises(RunFailed, match="broken") as caught:
            await engine.run(broken, id="1")
        assert (caught.value.kind, str(caught.value.run)) == ("ValueError", "broken/1")

    played(case)


@pytest.mark.rule("W-54", "W-48")
def test_a_run_past_its_time_failed_as_timed_out() -> None:
    async def case(engine: Engine) -> None:
        run = await engine.start(late)
        with pytest.raises(TimedOut):
            await run.result()
        assert await run.status() == "failed"

    played(case)


@pytest.mark.rule("W-19", "W-21")
def test_a_wait_s_own_bound_ends_the_wait_and_a_cancel_the_run() -> None:
    async def case(engine: Engine) -> None:
        run = await engine.start(decide)
        with pytest.raises(TimedOut):
            await run.result(timeout=0.01)
        assert await run.status() == "running"
        await run.cancel("enough")
        with pytest.raises(Canceled, match="enough"):
            await run.result()

    played(case)


@pytest.mark.rule("W-24")
def test_a_workflow_that_nobody_registered_cannot_be_started_by_its_name() -> None:
    async def case(engine: Engine) -> None:
        with pytest.raises(NotFound):
            await engine.start("unknown", 3)

    played(case)


@pytest.mark.rule("W-15", "W-6")
def test_what_is_no_definition_is_refused_before_anything_is_encoded() -> None:
    async def undeclared(ctx: Context) -> None: ...

    async def case(engine: Engine) -> None:
        things: list[Any] = [undeclared, decline, None, 3]
        for thing in things:
            with pytest.raises(DefinitionError, match="no run can be made of it"):
                await engine.start(thing, object())
            with pytest.raises(DefinitionError):
                engine.get(thing, "1")
        assert await ids(engine) == []

    played(case)


def test_joining_with_another_input_keeps_the_first_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def case(engine: Engine) -> None:
        first = await engine.run(pay, Order("1", 5), idempotency_key="k")
        with caplog.at_level(logging.WARNING, "perdure.client"):
            assert await engine.run(pay, Order("1", 6), idempotency_key="k") == first
        assert "another input" in caplog.text
        caplog.clear()
        assert await engine.run(pay, Order("1", 5), idempotency_key="k") == first
        assert caplog.text == ""

    played(case)


def test_a_workflow_that_failed_is_retried_by_its_handle_with_an_input_of_its_type() -> None:
    @workflow(max_duration="1h")
    async def pick(ctx: Context, n: int) -> int:
        if n < 0:
            raise Failure("negative")
        return n

    async def case() -> None:
        store = MemoryStore()
        async with Engine(store) as engine:
            run = await engine.start(pick, -1, id="1")
            with pytest.raises(Failure, match="negative"):
                await run.result()
            with pytest.raises(InvalidRequest, match="input of workflow pick"):
                await run.retry(failed=True, input="many")
            await run.retry(failed=True, input=4)
            assert await run.result() == 4

    asyncio.run(case())


def test_models_of_pydantic_go_in_and_come_out() -> None:
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed")

    class Card(pydantic.BaseModel):  # type: ignore[misc,name-defined]
        number: int
        owner: str = pydantic.Field(alias="ownerName")

    async def checked(ctx: Any, card: Any) -> Any:
        assert type(card) is Card
        return card

    checked.__annotations__.update({"card": Card, "return": Card})
    check = workflow(max_duration="1h")(checked)

    async def case(engine: Engine) -> None:
        made = await engine.run(check, Card(number=1, ownerName="ann"))
        assert made == Card(number=1, ownerName="ann")
        with pytest.raises(InvalidRequest, match="number: Field required"):
            await engine.run(check, {"ownerName": "ann"})

    played(case)
    assert perdure.Workflow is type(check)
