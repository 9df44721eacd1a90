"""Running sagas: what steps see and hand on, how attempts end, what a caller gets."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import msgspec
import pytest

from perdure import (
    Codec,
    Context,
    Failure,
    Graph,
    InvalidRequest,
    Outputs,
    Permanent,
    Retry,
    RunFailed,
    Saga,
    SagaContext,
    StepFailed,
    TimedOut,
    current_step,
    step,
    workflow,
)
from perdure.testing import TestEngine


class Order(msgspec.Struct):
    id: str
    total: int = 1


class Receipt(msgspec.Struct):
    charge: str


class CardDeclined(Failure, kind="test.saga.declined"):
    pass


@step(retry=3)
async def charge(order: Order) -> Receipt:
    return Receipt(f"ch_{order.id}")


def saga(name: str = "order") -> Saga[Order]:
    return Saga(name, Order)


@pytest.mark.rule("S-5", "S-6", "D-18")
def test_steps_see_the_payload_and_what_those_before_them_gave_as_their_types() -> None:
    seen: list[Any] = []

    def ship(ctx: SagaContext[Order]) -> str:
        seen.extend([ctx.payload, ctx.output(charge), ctx.output("charge")])
        return "track"

    made = saga().step("charge", charge).step("ship", ship)

    async def main() -> Outputs:
        async with TestEngine([made]) as engine:
            return await engine.run(made, Order("1", 5))

    out = asyncio.run(main())
    assert seen == [Order("1", 5), Receipt("ch_1"), Receipt("ch_1")]
    assert out == {"charge": Receipt("ch_1"), "ship": "track"}
    assert out.of(charge) == Receipt("ch_1")
    with pytest.raises(KeyError, match="no step of this name completed"):
        out["shop"]


@pytest.mark.rule("S-6")
def test_a_payload_of_another_type_is_refused_and_nothing_runs() -> None:
    made = saga().step("charge", charge)

    async def main() -> list[Any]:
        async with TestEngine([made]) as engine:
            wrong: Any = {"id": 7}
            with pytest.raises(InvalidRequest, match=r"payload of order: .* at `\$.id`"):
                await engine.start(made, wrong)
            with pytest.raises(InvalidRequest, match="needs a payload, of Order"):
                await engine.start("order")
            return [info async for info in engine.runs()]

    assert asyncio.run(main()) == []


@pytest.mark.rule("S-7", "SX-15")
def test_what_a_step_notes_is_seen_by_every_later_step_and_begins_with_the_starts_metadata() -> (
    None
):
    seen: list[Any] = []

    def first(ctx: SagaContext[Order]) -> None:
        seen.append((ctx.get("by"), ctx.get("n"), ctx.get("n", 0)))
        ctx.set("n", {"deep": [1]})
        ctx.set("by", "first")
        seen.append(ctx.get("by"))

    async def later(ctx: SagaContext[Order]) -> None:
        seen.append((ctx.run_id, ctx.get("by"), ctx.get("n")))

    made = saga().step("first", first).step("second", later).step("third", later)

    async def main() -> None:
        async with TestEngine([made]) as engine:
            await engine.run(made, Order("1"), id="mine", metadata={"by": "web"})

    asyncio.run(main())
    noted = ("mine", "first", {"deep": [1]})
    assert seen == [("web", None, 0), "first", noted, noted]


def test_what_an_attempt_noted_that_failed_is_not_recorded() -> None:
    seen: list[Any] = []

    async def twice(ctx: SagaContext[Order]) -> None:
        seen.append(ctx.get("n"))
        ctx.set("n", ctx.attempt)
        if ctx.attempt == 1:
            raise ValueError("again")

    async def after(ctx: SagaContext[Order]) -> None:
        seen.append(ctx.get("n"))

    made = saga().step("twice", twice, retry=Retry(2, initial=0)).step("after", after)

    async def main() -> None:
        async with TestEngine([made]) as engine:
            await engine.run(made, Order("1"))

    asyncio.run(main())
    assert seen == [None, None, 2]


@pytest.mark.rule("S-8")
def test_a_note_is_small_and_says_where_large_things_go() -> None:
    async def large(ctx: SagaContext[Order]) -> None:
        ctx.set("blob", "x" * 5000)

    made = saga().step("large", large)

    async def main() -> None:
        async with TestEngine([made]) as engine:
            await engine.run(made, Order("1"))

    with pytest.raises(RunFailed, match=r"'blob' takes 5,002 bytes.*return it from the step"):
        asyncio.run(main())


def noting(*notes: tuple[Any, Any], before: int = 0) -> list[str]:
    """What a step is told that makes these notes, after others that made `before`."""
    told: list[str] = []

    async def first(ctx: SagaContext[Order]) -> None:
        for n in range(before):
            ctx.set(f"k{n}", n)

    async def second(ctx: SagaContext[Order]) -> None:
        for key, value in notes:
            try:
                ctx.set(key, value)
            except InvalidRequest as error:
                told.append(str(error))

    async def undo(ctx: SagaContext[Order]) -> None:
        told.append("undone")

    async def bad(ctx: SagaContext[Order]) -> None:
        raise ValueError("no stock")

    made = saga().step("first", first, undo=undo).step("second", second).step("bad", bad)

    async def main() -> None:
        async with TestEngine([made]) as engine:
            with pytest.raises(RunFailed, match="no stock"):
                await engine.run(made, Order("1"))

    asyncio.run(main())
    assert told.pop() == "undone"
    return told


@pytest.mark.rule("S-7", "S-8")
def test_what_cannot_be_noted_is_refused_at_the_call_and_the_run_goes_on() -> None:
    assert noting(("k" * 256, 1), ("é" * 128, "x" * 4094)) == []
    refused = noting(
        ("\ud800", 1), ("k" * 257, 1), ("é" * 129, 1), ("", 1), (5, 1), ("a", "\ud800"),
        ("b", float("nan")), ("c", object()), ("d", "x" * 4095),
    )  # fmt: skip
    assert len(refused) == 9
    assert "a note's key cannot be written down: decode what '\\ud800'" in refused[0]
    assert "takes 257 bytes, at most 256" in refused[1]
    assert "takes 258 bytes, at most 256" in refused[2]


@pytest.mark.rule("S-7", "S-8")
def test_notes_of_a_run_are_bounded_in_number_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.saga.context.MOST_NOTES", 5)
    assert noting(("k0", 1), ("k3", 1), ("fifth", 1), ("fifth", 2), before=4) == []
    (told,) = noting(("fifth", 1), ("sixth", 1), before=4)
    assert "would have 6 notes of 24 bytes: at most 5 of 1,048,576 bytes" in told
    monkeypatch.setattr("perdure.saga.context.NOTES_LIMIT", 20)
    assert noting(("k0", "1234567890"), before=2) == []
    (told,) = noting(("k0", "12345678901234"), before=2)
    assert "would have 2 notes of 21 bytes: at most 5 of 20 bytes" in told


@pytest.mark.rule("S-9", "S-24")
def test_the_context_is_that_of_the_attempt_whose_key_stays_over_attempts() -> None:
    seen: list[Any] = []

    def one(ctx: SagaContext[Order]) -> None:
        ctx.heartbeat("alive")
        assert current_step() is ctx
        assert isinstance(ctx.logger, logging.Logger)
        assert ctx.resource(dict) == {"pool": 1}
        seen.append(
            (ctx.workflow, ctx.run_id, ctx.node, ctx.attempt, ctx.canceled, ctx.idempotency_key)
        )
        seen.append(threading.current_thread() is threading.main_thread())
        if ctx.attempt == 1:
            raise ValueError("once more")

    made = saga().step("one", one, retry=Retry(2, initial=0), timeout="1m")

    async def main() -> None:
        async with TestEngine([made], resources=[{"pool": 1}]) as engine:
            await engine.run(made, Order("1"), id="a")

    asyncio.run(main())
    (*first, key), in_main, (*second, again), _ = seen
    assert first == ["order", "a", "one", 1, False]
    assert second == ["order", "a", "one", 2, False]
    assert key == again
    assert not in_main


@pytest.mark.rule("S-12")
def test_a_permanent_error_ends_the_attempts_and_keeps_both_identities() -> None:
    tries: list[int] = []

    async def decline(ctx: SagaContext[Order]) -> None:
        tries.append(ctx.attempt)
        raise Permanent(CardDeclined("no money", details={"code": 51}))

    made = saga().step("pay", decline, retry=5)

    async def main() -> None:
        async with TestEngine([made]) as engine:
            await engine.run(made, Order("1"))

    with pytest.raises(CardDeclined) as raised:
        asyncio.run(main())
    assert tries == [1]
    assert (raised.value.kind, raised.value.permanent) == ("test.saga.declined", True)
    marked = Permanent(CardDeclined("no money"))
    assert isinstance(marked, CardDeclined)
    assert isinstance(marked, Permanent)
    assert isinstance(Permanent(ValueError("x")), ValueError)
    with pytest.raises(ConnectionError):
        raise Permanent(ConnectionResetError(104, "reset"))


@pytest.mark.rule("S-30")
def test_a_failure_names_workflow_step_and_attempt_and_is_reached_through_what_wraps_it() -> None:
    async def fail(ctx: SagaContext[Order]) -> None:
        raise ConnectionError("unplugged")

    made = saga().step("ok", charge).step("fail", fail, retry=Retry(2, initial=0))

    async def main() -> None:
        async with TestEngine([made]) as engine:
            await engine.run(made, Order("1"))

    with pytest.raises(RunFailed, match="node fail failed: unplugged") as raised:
        asyncio.run(main())
    cause = raised.value.__cause__
    assert isinstance(cause, StepFailed)
    assert (cause.workflow, cause.step, cause.attempt) == ("order", "fail", 2)
    assert (cause.kind, cause.message) == ("ConnectionError", "unplugged")
    assert not raised.value.compensated


@pytest.mark.rule("SX-4", "SX-6", "S-11")
def test_never_on_ends_the_attempts_and_jitter_spreads_the_delays() -> None:
    tries: list[int] = []

    async def fail(ctx: SagaContext[Order]) -> None:
        tries.append(ctx.attempt)
        raise KeyError("k") if ctx.attempt == 2 else ValueError("v")

    policy = Retry(9, initial=0, never_on=KeyError)
    made = saga().step("fail", fail, retry=policy)

    async def main() -> None:
        async with TestEngine([made]) as engine:
            await engine.run(made, Order("1"))

    with pytest.raises(RunFailed):
        asyncio.run(main())
    assert tries == [1, 2]
    spread = Retry(3, initial=10, jitter=0.2).policy
    assert [spread.delay(1, roll) for roll in (0.0, 0.5)] == [8_000_000, 10_000_000]


@pytest.mark.rule("S-18", "S-13")
def test_a_steps_time_bounds_one_attempt_and_the_sagas_the_whole_run() -> None:
    async def slow(ctx: SagaContext[Order]) -> None:
        assert ctx.deadline is not None
        await asyncio.Event().wait()

    def of(name: str, **options: Any) -> Saga[Order]:
        return Saga(name, Order, max_duration="10m").step("slow", slow, **options)

    timed = of("timed", timeout="1m", retry=Retry(2, initial=1))
    whole = of("whole", timeout="1h", retry=Retry(5, initial=3600, max_delay=None))

    async def main() -> list[Any]:
        ends: list[Any] = []
        async with TestEngine([timed, whole]) as engine:
            runs = [await engine.start(one, Order("1")) for one in (timed, whole)]
            await engine.advance("20m")
            for one in runs:
                with pytest.raises(TimedOut) as raised:
                    await one.result()
                ends.append((str(raised.value), raised.value.kind))
        return ends

    [attempt, deadline] = asyncio.run(main())
    assert attempt == (
        "node slow failed: attempt 2 of node slow took longer than 60 s",
        "workflow.timeout",
    )
    assert deadline[1] == "workflow.timeout"


def test_a_skipped_step_has_no_output_and_what_waits_for_it_runs() -> None:
    async def gift(ctx: SagaContext[Order]) -> str:
        return "gift"

    async def ship(ctx: SagaContext[Order]) -> str:
        return ctx.output("gift") if ctx.payload.total > 50 else "plain"

    made = saga().step("gift", gift, when=lambda order: order.total > 50).step("ship", ship)

    async def main() -> list[Outputs]:
        async with TestEngine([made]) as engine:
            return [await engine.run(made, Order("1", total)) for total in (5, 60)]

    assert asyncio.run(main()) == [{"ship": "plain"}, {"gift": "gift", "ship": "gift"}]


def test_an_output_that_is_not_there_says_why_and_is_not_asked_for_again() -> None:
    async def ask(ctx: SagaContext[Order]) -> None:
        ctx.output("other")

    made = saga().step("other", charge).step("ask", ask, retry=5, depends_on=[])

    async def main() -> None:
        async with TestEngine([made]) as engine:
            await engine.run(made, Order("1"))

    with pytest.raises(RunFailed, match="asks for the output of other, and has none") as raised:
        asyncio.run(main())
    cause = raised.value.__cause__
    assert isinstance(cause, StepFailed)
    assert cause.attempt == 1


class Shouting(Codec):
    """Not JSON as it is: every text is loud."""

    def encode(self, value: object, /) -> bytes:
        return super().encode({"sealed": super().encode(value).hex()})

    def decode(self, data: bytes, type: Any, /) -> Any:
        return super().decode(bytes.fromhex(msgspec.json.decode(data)["sealed"]), type)


@workflow(max_duration="1h")
async def pay(ctx: Context, order: Order) -> Receipt:
    return await charge(order)


NOTHING = Graph.load(
    {"name": "nothing", "nodes": [{"id": "a", "type": "JOIN"}], "output": {"id": "{{input.id}}"}}
)


@pytest.mark.parametrize("codec", [None, Shouting()])
def test_the_three_doors_call_one_another(codec: Codec | None) -> None:
    async def sum_up(ctx: SagaContext[Order]) -> list[Any]:
        ctx.set("note", "n")
        return [ctx.output("pay"), ctx.output("graph"), ctx.output(charge)]

    inner = saga("inner").step("charge", charge)
    made = (
        saga()
        .step("pay", pay)
        .step("graph", NOTHING)
        .step("inner", inner)
        .step("charge", charge)
        .step("sum", sum_up)
    )

    @workflow(max_duration="1h")
    async def outer(ctx: Context, order: Order) -> list[Any]:
        out = await ctx.child(made, order)
        return [out.of(charge).charge, out["inner"].of(charge).charge, out["graph"]]

    graph = Graph.load(
        {
            "name": "around",
            "nodes": [
                {"id": "a", "type": "CHILD", "spec": {"workflow": "order", "input": "{{input}}"}}
            ],
            "output": "{{tasks.a.output.inner.charge.charge}}",
        }
    )

    async def main() -> list[Any]:
        async with TestEngine([made, inner, pay, NOTHING, outer, graph], codec=codec) as engine:
            order = Order("1")
            out = await engine.run(made, order)
            return [
                out["sum"], await engine.run(outer, order),
                await engine.run(graph, {"id": "2", "total": 1}),
            ]  # fmt: skip

    receipt = {"charge": "ch_1"}
    assert asyncio.run(main()) == [
        [receipt, {"id": "1"}, receipt],
        ["ch_1", "ch_1", {"id": "1"}],
        "ch_2",
    ]


def test_a_faked_step_answers_in_a_saga_too() -> None:
    made = saga().step("charge", charge)

    async def main() -> Outputs:
        async with TestEngine([made]) as engine:
            fake = engine.fake(charge, returns=Receipt("fake"))
            out = await engine.run(made, Order("1"))
            assert fake.calls == [(Order("1"),)]
            return out

    assert asyncio.run(main()).of(charge) == Receipt("fake")
