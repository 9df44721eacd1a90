"""Attempts: one observation for each time a handler is really called, and for nothing else."""

from __future__ import annotations

import asyncio
import logging
from contextvars import copy_context
from typing import Any

import pytest

from perdure import (
    Context,
    Failure,
    Retry,
    RunFailed,
    Signal,
    current_step,
    step,
    workflow,
)
from perdure.engine.attempts.observed import observed
from perdure.engine.attempts.orders import Order
from perdure.engine.attempts.stepping import Waiting, first_part
from perdure.kernel.events import NodeCompleted
from tests.virtual.collecting import Collector
from tests.virtual.engines import engine_on, graph, killed, task
from tests.virtual.loop import run, settle
from tests.virtual.stores import VirtualStore

go = Signal("go", str)


@step(retry=Retry(3, initial=5))
async def flaky(fails: int) -> str:
    if current_step().attempt <= fails:
        raise OSError("no luck")
    return "done"


@step(timeout=10)
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@workflow(max_duration="1d")
async def trying(ctx: Context, fails: int) -> str:
    await asyncio.sleep(60)
    return await flaky(fails)


@workflow(max_duration="1d")
async def waiting(ctx: Context) -> str:
    await flaky(0)
    return await ctx.wait(go)


@workflow(max_duration="1d")
async def slowly(ctx: Context, seconds: float) -> str:
    try:
        return await slow(seconds)
    except Failure as failed:
        return failed.kind


def attempts(seen: Collector) -> list[tuple[Any, ...]]:
    return [
        ((s.attributes or {})["perdure.attempt"], (s.attributes or {})["perdure.outcome"])
        for s in seen.spans("step_attempt")
    ]


@pytest.mark.rule("W-59")
def test_each_attempt_is_one_span_one_count_and_one_duration(seen: Collector) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), trying, telemetry=seen.telemetry) as engine:
            assert await engine.run(trying, 2, id="a") == "done"

    run(main())
    assert attempts(seen) == [(1, "error"), (2, "error"), (3, "ok")]
    first, _, last = seen.spans("step_attempt")
    assert dict(first.attributes or {}) == {
        "perdure.operation": "step_attempt",
        "perdure.workflow": "trying",
        "perdure.step": "flaky",
        "perdure.attempt": 1,
        "perdure.outcome": "error",
        "error.type": "failed",
    }
    assert first.name == "step_attempt flaky"
    assert (first.status.is_ok, first.status.description) == (False, None)
    assert last.status.is_unset
    assert first.events == (), "no exception is recorded: it has a text"
    counted = {labels: n for labels, n in seen.counts().items() if "step_attempt" in labels}
    assert counted == {("step_attempt", "error", "failed"): 2, ("step_attempt", "ok"): 1}
    measured = {
        tuple(p.attributes.values()): p.count for p in seen.points("perdure.operation.duration")
    }
    assert measured == seen.counts()


@pytest.mark.rule("W-59")
def test_what_is_recorded_is_not_observed_again_where_the_run_goes_on(seen: Collector) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with killed(store, waiting, telemetry=seen.telemetry) as engine:
            await engine.start(waiting, id="a")
            await settle()
        assert attempts(seen) == [(1, "ok")]
        async with engine_on(store, waiting, telemetry=seen.telemetry) as engine:
            handle = engine.get(waiting, "a")
            await handle.signal(go, "yes")
            assert await handle.result() == "yes"

    run(main())
    assert attempts(seen) == [(1, "ok")]


@pytest.mark.rule("W-59")
def test_a_step_that_is_not_there_was_not_attempted(seen: Collector) -> None:
    @step
    async def missing() -> None: ...

    async def main() -> None:
        store = VirtualStore()
        document = graph(
            "g", [task("missing"), task("flaky", input={"fails": 0})], [], entry="missing"
        )
        async with engine_on(store, document, missing, flaky) as engine:
            engine._shell.lease_over = 0.0  # nothing is executed yet
            await engine.start(document, id="a")
        async with engine_on(store, flaky, telemetry=seen.telemetry) as engine:
            engine._shell.served.add(document)
            await engine.resume()
            await settle()
            assert (await engine.get("g", "a").describe()).stalled is not None

    run(main())
    assert seen.spans("step_attempt") == []


@pytest.mark.rule("W-59")
def test_nodes_of_graphs_are_observed_as_steps_of_workflows_are(seen: Collector) -> None:
    async def main() -> None:
        document = graph("g", [task("first", "flaky", input={"fails": 1})])
        async with engine_on(VirtualStore(), document, flaky, telemetry=seen.telemetry) as engine:
            await engine.run(document, id="a")

    run(main())
    assert attempts(seen) == [(1, "error"), (2, "ok")]
    assert {(s.attributes or {})["perdure.step"] for s in seen.spans("step_attempt")} == {"first"}


def test_an_attempt_whose_time_is_over_is_told_as_such(seen: Collector) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), slowly, telemetry=seen.telemetry) as engine:
            assert await engine.run(slowly, 60, id="a") == "workflow.timeout"

    run(main())
    assert seen.told("step_attempt") == [("step_attempt slow", "error", "timeout")]


def test_an_attempt_that_nobody_wants_any_more_is_neither_success_nor_failure(
    seen: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    # scenario 122
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, slowly, telemetry=seen.telemetry, grace=0) as engine:
            canceled = await engine.start(slowly, 5, id="a")
            await engine.start(slowly, 5, id="b")
            await settle()
            await canceled.cancel()
            await settle()

    with caplog.at_level(logging.WARNING):
        run(main())
    assert seen.told("step_attempt") == [("step_attempt slow", "canceled")] * 2
    assert all(span.status.is_unset for span in seen.spans("step_attempt"))
    assert caplog.records == []


def test_an_output_that_cannot_be_recorded_is_an_attempt_that_failed(seen: Collector) -> None:
    @step
    async def odd() -> Any:
        return object()

    @workflow(max_duration="1d")
    async def oddly(ctx: Context) -> None:
        await odd()

    async def main() -> None:
        async with engine_on(VirtualStore(), oddly, telemetry=seen.telemetry) as engine:
            with pytest.raises(RunFailed):
                await engine.run(oddly, id="a")

    run(main())
    assert seen.told("step_attempt") == [("step_attempt odd", "error", "invalid")]


@pytest.mark.rule("W-59")
def test_spans_of_a_step_s_own_stand_below_its_attempt(seen: Collector) -> None:
    @step
    async def asking() -> None:
        await asyncio.sleep(1)
        with seen.tracer.start_as_current_span("query"):
            await asyncio.sleep(1)

    @step
    def counting() -> None:
        with seen.tracer.start_as_current_span("count"):
            pass

    @workflow(max_duration="1d")
    async def both(ctx: Context) -> None:
        await asking()
        await counting()

    async def main() -> None:
        async with engine_on(VirtualStore(), both, telemetry=seen.telemetry) as engine:
            with seen.tracer.start_as_current_span("request"):
                await engine.run(both, id="a")

    run(main())
    by_name = {span.name: span for span in seen.spans()}
    for inner, outer in (("query", "step_attempt asking"), ("count", "step_attempt counting")):
        parent, above = by_name[inner].parent, by_name[outer].context
        assert parent is not None
        assert above is not None
        assert parent.span_id == above.span_id


class Panic(BaseException):
    """What no engine may hold up."""


class Fake:
    """In the dispatcher's place: its handler does what it is told."""

    def __init__(self, act: Any) -> None:
        self.act = act

    def begin(self, order: Order, first: Any = first_part) -> Any:
        async def handle() -> Any:
            return self.act()

        step: Any = None
        try:
            first(lambda attempt, context: handle(), order, step)
        except StopIteration as stop:
            return stop.value
        raise AssertionError("it does not wait")


def ordered(seen: Collector, act: Any) -> Any:
    order = Order("trying", "a", "flaky#1", "STEP", "t1", 0, None, step=flaky)
    dispatcher: Any = Fake(act)
    return copy_context().run(observed, seen.telemetry, dispatcher, order, None)


@pytest.mark.rule("W-62")
@pytest.mark.parametrize("kind", [Panic, KeyboardInterrupt, SystemExit])
def test_what_goes_through_an_attempt_closes_it_and_goes_on_as_it_is(
    seen: Collector, kind: type[BaseException]
) -> None:
    thrown = kind("a secret")

    def act() -> None:
        raise thrown

    with pytest.raises(kind) as caught:
        ordered(seen, act)
    assert caught.value is thrown
    assert seen.told() == [("step_attempt flaky", "panic")]
    assert not seen.spans()[0].status.is_ok
    assert "secret" not in seen.everything()
    assert kind.__name__ not in seen.everything()


class FakeThatWaits(Fake):
    """Its handler waits once before that, and nothing that it raises is the attempt's own."""

    def begin(self, order: Order, first: Any = first_part) -> Any:
        async def handle() -> Any:
            await asyncio.sleep(0)
            return self.act()

        step: Any = None
        steps, awaited = first(lambda attempt, context: handle(), order, step)
        return Waiting(order, step, self, steps, copy_context(), awaited)

    def returned(self, attempt: Waiting, value: Any) -> Any:
        raise AssertionError("it does not return")

    def raised(self, attempt: Waiting, error: BaseException) -> Any:
        raise error

    def closed(self, attempt: Waiting) -> None:
        pass


def waited(seen: Collector, act: Any) -> Waiting:
    order = Order("trying", "a", "flaky#1", "STEP", "t1", 0, None, step=flaky)
    dispatcher: Any = FakeThatWaits(act)
    made = copy_context().run(observed, seen.telemetry, dispatcher, order, None)
    assert isinstance(made, Waiting)
    assert seen.told() == []
    return made


@pytest.mark.rule("W-62")
@pytest.mark.parametrize("kind", [Panic, KeyboardInterrupt, SystemExit])
def test_what_goes_through_an_attempt_that_waited_closes_it_too(
    seen: Collector, kind: type[BaseException]
) -> None:
    def act() -> None:
        raise kind("a secret")

    attempt = waited(seen, act)
    with pytest.raises(kind):
        attempt.send(None)
    assert seen.told() == [("step_attempt flaky", "panic")]
    assert "secret" not in seen.everything()


def test_an_attempt_that_is_closed_while_it_waits_is_given_up(seen: Collector) -> None:
    def act() -> None:
        raise AssertionError("it does not go on")

    waited(seen, act).close()
    assert seen.told() == [("step_attempt flaky", "canceled")]


@pytest.mark.parametrize("broken", ["begin", "enter", "end"])
def test_a_provider_that_fails_is_told_of_once_and_hurts_nothing(
    seen: Collector, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            if name == broken:
                raise RuntimeError("the collector is down")
            return getattr(instruments, name)

    instruments = seen.telemetry.instruments
    stand_in: Any = Broken()
    seen.telemetry.instruments = stand_in
    report = NodeCompleted("t1", "flaky#1", 0, b"1")  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        assert ordered(seen, lambda: report) is report
        assert ordered(seen, lambda: report) is report
    assert [record.message for record in caplog.records] == ["telemetry failed; this is said once"]


@pytest.mark.rule("W-60")
def test_a_failure_s_kind_does_not_get_out_either(seen: Collector) -> None:
    @step
    async def declined() -> None:
        raise Failure("card 4242-1881 of ann", kind="declined-ann")

    @workflow(max_duration="1d")
    async def paying(ctx: Context) -> None:
        await declined()

    async def main() -> None:
        async with engine_on(VirtualStore(), paying, telemetry=seen.telemetry) as engine:
            with pytest.raises(RunFailed, match="card 4242-1881"):
                await engine.run(paying, id="of-ann")

    run(main())
    assert seen.told("step_attempt") == [("step_attempt declined", "error", "failed")]
    assert seen.told("result") == [("result paying", "error", "failed")]
    assert "ann" not in seen.everything()
    assert "4242-1881" not in seen.everything()


@pytest.mark.rule("W-60")
def test_attempts_that_are_seen_begin_in_one_task_like_others(seen: Collector) -> None:
    tasks: list[Any] = []

    @step
    async def quick() -> None:
        tasks.append(asyncio.current_task())

    chain = graph("chain", [task(f"n{i}", "quick") for i in range(3)])

    async def main() -> None:
        async with engine_on(VirtualStore(), chain, quick, telemetry=seen.telemetry) as engine:
            await asyncio.gather(*(engine.run(chain, id=str(i)) for i in range(4)))

    run(main())
    assert (len(tasks), len(set(tasks))) == (12, 1)
    assert len(seen.spans("step_attempt")) == 12
