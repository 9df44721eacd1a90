"""Traces: a start's trace stays beside its run, wherever it is worked on and whatever it starts."""

from __future__ import annotations

from typing import Any

import pytest

from perdure import Context, InvalidRequest, NotFound, Signal, step, workflow
from perdure.blocking import Client as BlockingClient
from perdure.stores.memory import MemoryStore
from tests.virtual.collecting import Collector
from tests.virtual.engines import client_on, engine_on, graph, killed, task
from tests.virtual.loop import run, settle
from tests.virtual.stores import VirtualStore

TRACE = 0x0AF7651916CD43DD8448EB211C80319C
GIVEN = {"traceparent": f"00-{TRACE:032x}-b7ad6b7169203331-01", "tracestate": "shop=1"}
go = Signal("go", str)


@step
async def work(what: str) -> str:
    return what


@workflow(max_duration="1d")
async def inner(ctx: Context, what: str) -> str:
    return await work(what)


@workflow(max_duration="1d")
async def family(ctx: Context) -> dict[str, str]:
    await ctx.child(inner, "child")
    await ctx.spawn(inner, "spawned")
    await work("own")
    return dict(ctx.metadata)


@workflow(max_duration="1d")
async def waiting(ctx: Context) -> str:
    await work("before")
    return await work(await ctx.wait(go))


@workflow(max_duration="1d")
async def again(ctx: Context, left: int) -> None:
    await work(str(left))
    if left:
        ctx.continue_as_new(left - 1)


THINGS = (family, inner, waiting, again, work)


def traces(seen: Collector, *operations: str) -> list[int]:
    """The trace of each span."""
    return [span.context.trace_id for span in seen.spans(*operations) if span.context]


@pytest.mark.rule("W-61")
def test_children_and_spawned_runs_belong_to_the_trace_of_the_first_start(seen: Collector) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), *THINGS, telemetry=seen.telemetry) as engine:
            with seen.tracer.start_as_current_span("request") as request:
                started = await engine.start(family, id="a", metadata={"tenant": "t"})
            assert await started.result() == {"tenant": "t"}, "the carrier is no metadata"
            assert (await started.describe()).metadata == {"tenant": "t"}
            await settle()
            spawned = [info.id async for info in engine.runs(workflow="inner")]
            for id in spawned:
                assert (await engine.get(inner, id).describe()).metadata == {}
            assert len(spawned) == 2
            assert set(traces(seen, "start", "step_attempt")) == {
                request.get_span_context().trace_id
            }

    run(main())
    [start] = seen.spans("start")
    attempts = seen.spans("step_attempt")
    assert len(attempts) == 3
    assert start.context is not None
    assert {a.parent.span_id for a in attempts if a.parent} == {start.context.span_id}


@pytest.mark.rule("W-61")
def test_a_trace_outlives_the_process_that_it_was_given_to(seen: Collector) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with killed(store, *THINGS, telemetry=seen.telemetry) as engine:
            await engine.start(waiting, id="a", trace=GIVEN)
            await settle()
        async with engine_on(store, *THINGS, telemetry=seen.telemetry) as engine:
            handle = engine.get(waiting, "a")
            with seen.tracer.start_as_current_span("elsewhere"):
                await handle.signal(go, "after")
            assert await handle.result() == "after"

    run(main())
    assert traces(seen, "start", "step_attempt") == [TRACE] * 3, "a signal gives it no other parent"
    assert traces(seen, "signal") != [TRACE]


@pytest.mark.rule("W-61")
def test_it_goes_on_as_new_and_is_retried_in_the_same_trace(seen: Collector) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, *THINGS, telemetry=seen.telemetry) as engine:
            await engine.run(again, 2, id="a", trace=GIVEN)
            document = graph("g", [task("w", "work", input="x")])
            ended = await engine.start(document, id="g", trace=GIVEN)
            await ended.result()
            await ended.retry(from_node="w")
            await ended.result()

    run(main())
    assert traces(seen, "step_attempt") == [TRACE] * 5


@pytest.mark.rule("W-61", "W-23")
def test_a_carrier_is_kept_as_it_was_given_by_who_observes_nothing(seen: Collector) -> None:
    given = dict(GIVEN)

    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            handle = await client.start(family, id="a", trace=given)
            given.clear()
            [opened, *_] = [record async for record in handle.history()]
            assert opened["trace"] == GIVEN
            assert "metadata" not in opened
        async with engine_on(store, *THINGS, telemetry=seen.telemetry) as engine:
            await engine.get(family, "a").result()

    run(main())
    [attempt, *_] = seen.spans("step_attempt")
    assert attempt.context is not None
    assert attempt.parent is not None
    assert attempt.context.trace_id == TRACE
    assert attempt.parent.span_id == 0xB7AD6B7169203331, "nothing stands between"


@pytest.mark.rule("W-61")
@pytest.mark.parametrize("nothing", [None, {}])
def test_without_a_carrier_each_attempt_begins_a_trace_of_its_own(
    seen: Collector, nothing: dict[str, str] | None
) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            handle = await client.start(inner, "x", id="a", trace=nothing)
            [opened, *_] = [record async for record in handle.history()]
            assert "trace" not in opened
        with seen.tracer.start_as_current_span("whoever has the loop"):
            async with engine_on(store, *THINGS, telemetry=seen.telemetry) as engine:
                await engine.get(inner, "a").result()

    run(main())
    [attempt] = seen.spans("step_attempt")
    assert attempt.parent is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("00-1-2-01", "trace must map text to text, and not be str"),
        ({"traceparent": 1}, "trace must map text to text: something in it is no text"),
        ({"traceparent": "\ud800"}, "trace holds text that is not valid Unicode"),
        ({"baggage": "x" * 20_000}, "trace has 20,007 bytes: at most 16,384"),
    ],
)
def test_a_carrier_that_cannot_be_one_is_refused_and_nothing_is_started(
    seen: Collector, wrong: Any, said: str
) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), *THINGS, telemetry=seen.telemetry) as engine:
            with pytest.raises(InvalidRequest) as refused:
                await engine.start(inner, "x", id="a", trace=wrong)
            assert str(refused.value) == said
            with pytest.raises(NotFound):
                await engine.get(inner, "a").describe()

    run(main())
    assert seen.told("start") == [("start inner", "error", "invalid")]


def test_a_carrier_that_says_nothing_is_as_none(seen: Collector) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), *THINGS, telemetry=seen.telemetry) as engine:
            assert await engine.run(inner, "x", id="a", trace={"traceparent": "gibberish"}) == "x"

    run(main())
    [start], [attempt] = seen.spans("start"), seen.spans("step_attempt")
    assert start.parent is None
    assert start.context is not None
    assert attempt.context is not None
    assert attempt.context.trace_id == start.context.trace_id


@pytest.mark.rule("W-61")
def test_the_context_of_the_caller_reaches_the_calls_of_a_synchronous_client(
    seen: Collector,
) -> None:
    store = MemoryStore()
    span = seen.tracer.start_as_current_span("request")
    with BlockingClient(store, telemetry=seen.telemetry) as client, span as request:
        client.start(inner, "x", id="a")
    assert traces(seen, "start") == [request.get_span_context().trace_id]
