"""The feed: what is durable, in order, to whoever listens; and no listener can hurt a run."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest

from perdure.feed import (
    ReportIgnored,
    RunEvent,
    WaitEnded,
    WaitStarted,
    WorkflowCanceled,
    WorkflowCompleted,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowPaused,
    WorkflowRecord,
    WorkflowStarted,
    WorkflowStepCompleted,
    WorkflowStepFailed,
    WorkflowStepRetrying,
    WorkflowStepSkipped,
    WorkflowStepStarted,
    WorkflowTimedOut,
    WorkflowUnpaused,
)
from perdure.flow.context import Context
from perdure.flow.step import step
from perdure.flow.workflow import workflow
from perdure.model.errors import Canceled, Failure, StoreError, TimedOut
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.virtual.engines import client_on, engine_on, graph, node, task, wait_for
from tests.virtual.loop import BEGIN, run, settle
from tests.virtual.stores import LateStore, VirtualStore


class CardDeclined(Failure, kind="feed-card-declined"):
    """No money."""


@step(retry=Retry(2, initial=5))
async def flaky(fails: int = 1) -> str:
    if current_step().attempt <= fails:
        raise CardDeclined("no money")
    return "done"


@step
async def slow() -> str:
    await asyncio.sleep(10)
    return "done"


SWITCH = graph(
    "switch",
    [task("flaky"), node("s", "SWITCH"), task("no", "slow"), wait_for("ok", "go", "1h")],
    ["flaky s", {"from": "s", "to": "no", "condition": "{{input.no}}"},
     {"from": "s", "to": "ok", "default": True}],
)  # fmt: skip


def note(ids: list[str], event: RunEvent) -> None:
    ids.append(event.run_id)


def named(event: RunEvent) -> str:
    name = type(event).__name__.replace("WorkflowStep", "Step")
    return f"{name} {getattr(event, 'step', '')}".strip()


@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_a_run_is_told_from_its_start_to_its_end(kind: type[VirtualStore]) -> None:
    seen: list[RunEvent] = []

    async def main() -> None:
        async with engine_on(kind(), SWITCH, flaky, slow) as engine:

            @engine.listen(RunEvent)
            async def hear(event: RunEvent) -> None:
                seen.append(event)

            started = await engine.start(SWITCH, {"no": False}, id="1")
            await asyncio.sleep(20)
            await started.pause()
            await started.unpause()
            await started.signal("go")
            await started.result()

    run(main())
    assert [named(event) for event in seen] == [
        "WorkflowStarted", "StepStarted flaky", "StepRetrying flaky", "StepStarted flaky",
        "StepCompleted flaky", "StepCompleted s", "StepSkipped no", "WaitStarted ok",
        "WorkflowPaused", "WorkflowUnpaused", "WaitEnded ok", "WorkflowCompleted",
    ]  # fmt: skip
    assert {(event.workflow, event.run_id) for event in seen} == {("switch", "1")}
    assert [event.time for event in seen] == sorted(event.time for event in seen)
    began = datetime.fromtimestamp(BEGIN / 1_000_000, UTC)
    assert abs(seen[0].time - began) < timedelta(seconds=1)
    _, first, retrying, second, done, switched, *_ = seen
    assert isinstance(switched, WorkflowStepCompleted)
    assert switched.attempt == 0, "it needs none"
    assert isinstance(first, WorkflowStepStarted)
    assert isinstance(retrying, WorkflowStepRetrying)
    assert isinstance(second, WorkflowStepStarted)
    assert isinstance(done, WorkflowStepCompleted)
    assert [first.attempt, retrying.attempt, second.attempt, done.attempt] == [1, 1, 2, 2]
    assert isinstance(retrying.failure, CardDeclined)
    assert retrying.next_attempt - retrying.time == timedelta(seconds=5)
    waiting = next(event for event in seen if isinstance(event, WaitStarted))
    assert waiting.signal == "go"
    assert waiting.until == waiting.time + timedelta(hours=1)
    assert next(event for event in seen if isinstance(event, WaitEnded)).failure is None


def test_a_listener_hears_the_class_it_names_and_those_derived_from_it() -> None:
    heard: dict[type[Any], list[str]] = {}
    kinds: list[type[RunEvent]] = [
        WorkflowFinished, WorkflowFailed, WorkflowCanceled, WorkflowCompleted, WorkflowStepFailed,
        WorkflowStepSkipped, WorkflowStarted, WorkflowPaused, WorkflowUnpaused,
    ]  # fmt: skip
    g = graph("g", [task("flaky", input={"fails": "{{input.fails}}"}), wait_for("ok", "go")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, flaky) as engine:
            for kind in kinds:
                heard[kind] = []
                engine.listen(kind)(partial(note, heard[kind]))
            with pytest.raises(CardDeclined):
                await engine.run(g, {"fails": 2}, id="failed")
            canceled = await engine.start(g, {"fails": 0}, id="canceled")
            await settle()
            await canceled.cancel()
            with pytest.raises(Canceled):
                await canceled.result()
            completed = await engine.start(g, {"fails": 0}, id="completed")
            await completed.signal("go")
            await completed.result()

    run(main())
    assert heard[WorkflowFinished] == ["failed", "canceled", "completed"]
    assert heard[WorkflowFailed] == ["failed"]
    assert heard[WorkflowCanceled] == ["canceled"]
    assert heard[WorkflowCompleted] == ["completed"]
    assert heard[WorkflowStarted] == ["failed", "canceled", "completed"]
    assert heard[WorkflowStepFailed] == ["failed", "canceled"]
    assert heard[WorkflowStepSkipped] == heard[WorkflowPaused] == heard[WorkflowUnpaused] == []


def test_a_failed_run_says_which_step_failed_and_how() -> None:
    seen: list[WorkflowFailed] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), SWITCH, flaky, slow) as engine:
            engine.listen(WorkflowFailed)(seen.append)
            g = graph("g", [task("flaky", input={"fails": 9})])
            with pytest.raises(CardDeclined):
                await engine.run(g, id="1")

    run(main())
    (event,) = seen
    assert (event.step, event.run_id) == ("flaky", "1")
    assert isinstance(event.failure, CardDeclined)


@pytest.mark.rule("SX-10")
def test_the_start_tells_the_steps_of_the_plan_and_what_started_the_run() -> None:
    seen: list[WorkflowStarted] = []

    @workflow(max_duration=None)
    async def coded(ctx: Context) -> None: ...

    async def main() -> None:
        async with engine_on(VirtualStore(), SWITCH, coded, flaky, slow) as engine:
            engine.listen(WorkflowStarted)(seen.append)
            await engine.start(SWITCH, {"no": True}, id="1", metadata={"trigger": "http"})
            await engine.run(coded, id="2")

    run(main())
    assert [(event.run_id, event.steps, event.trigger) for event in seen] == [
        ("1", ("flaky", "s", "no", "ok"), "http"),
        ("2", (), "start"),
    ]


def test_a_run_that_reached_its_deadline_is_told_apart_from_one_whose_step_took_too_long() -> None:
    seen: list[WorkflowFailed] = []
    late = graph("late", [wait_for("ok", "go")], max_duration="1h")
    slower = graph("slower", [task("slow", timeout="1s")], max_duration="1h")

    async def main() -> None:
        async with engine_on(VirtualStore(), late, slower, slow) as engine:
            engine.listen(WorkflowFailed)(seen.append)
            for definition in (late, slower):
                with pytest.raises(TimedOut):
                    await engine.run(definition, id="1")

    run(main())
    assert [(type(event), event.workflow, event.step) for event in seen] == [
        (WorkflowTimedOut, "late", ""),
        (WorkflowFailed, "slower", "slow"),
    ]


@pytest.mark.rule("SX-12")
def test_a_listener_that_fails_hurts_neither_runs_nor_other_listeners(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[str] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), SWITCH, flaky, slow) as engine:

            @engine.listen(RunEvent)
            async def broken(event: RunEvent) -> None:
                raise ZeroDivisionError("a bug of the listener")

            @engine.listen(RunEvent)
            def fine(event: RunEvent) -> None:
                heard.append(named(event))

            assert await engine.run(SWITCH, {"no": True}, id="1") == {"no": "done"}

    run(main())
    assert heard[-1] == "WorkflowCompleted"
    assert "a listener to RunEvent failed" in caplog.text


def test_a_listener_that_is_slow_keeps_no_run_waiting_and_hears_everything_in_order() -> None:
    # scenario 19
    heard: list[str] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), SWITCH, flaky, slow, grace=100) as engine:

            @engine.listen(WorkflowStepCompleted)
            async def slowly(event: WorkflowStepCompleted) -> None:
                await asyncio.sleep(5)
                heard.append(event.run_id)

            for number in range(10):
                await engine.run(graph("g", [task("flaky", input={"fails": 0})]), id=str(number))
            assert asyncio.get_running_loop().time() == 0
            assert heard == []

    run(main())
    assert heard == [str(number) for number in range(10)], "an engine that closes lets it hear"


class Placed(msgspec.Struct):
    """An event of the program's own."""


@pytest.mark.rule("SX-11")
@pytest.mark.parametrize(("grace", "seconds"), [(7, 7.0), (0, 1.0)])
def test_an_engine_that_closes_waits_for_no_listener_beyond_its_grace_and_names_it(
    grace: float, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    async def main() -> None:
        g = graph("g", [task("flaky", input={"fails": 0})])
        async with engine_on(VirtualStore(), g, flaky, grace=grace) as engine:

            @engine.listen(WorkflowStepCompleted)
            async def never(event: WorkflowStepCompleted) -> None:
                try:
                    await asyncio.Event().wait()
                finally:
                    heard.append("is canceled")

            @engine.listen(WorkflowStepCompleted)
            async def later(event: WorkflowStepCompleted) -> None:
                await asyncio.sleep(0.9)
                heard.append(event.run_id)

            for number in range(2):
                await engine.run(g, id=str(number))
        assert asyncio.get_running_loop().time() == seconds

    run(main())
    assert sorted(heard) == ["0", "1", "is canceled"] if grace else ["0", "is canceled"]
    [said] = [record.getMessage() for record in caplog.records if "never" in record.getMessage()]
    assert said.startswith(
        "a listener to WorkflowStepCompleted has not returned, and is waited for no longer: "
        f"{__name__}.test_an_engine_that_closes"
    )
    assert said.endswith(".never; 2 event(s) were not heard to the end")


@pytest.mark.rule("SX-11")
@pytest.mark.parametrize(
    ("make", "seconds"), [(client_on, 5.0), (lambda store: engine_on(store, grace=9), 9.0)]
)
def test_nor_is_a_listener_to_what_was_emitted_waited_for_without_end(
    make: Any, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with make(VirtualStore()) as client:

            @client.listen(Placed)
            async def never(event: Placed) -> None:
                await asyncio.Event().wait()

            await client.emit(Placed())
        assert asyncio.get_running_loop().time() == seconds

    run(main())
    [said] = [record.getMessage() for record in caplog.records]
    assert said.startswith("a listener to Placed has not returned")


def test_records_that_cannot_be_read_keep_no_engine_from_closing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Away(VirtualStore):
        async def rows(self, key: bytes, after: int, limit: int) -> Any:
            raise StoreError("away")

    async def main() -> None:
        g = graph("g", [task("flaky", input={"fails": 0})])
        async with engine_on(Away(), g, flaky, grace=3) as engine:
            engine.listen(WorkflowRecord)(print)
            await engine.run(g, id="1")
        assert asyncio.get_running_loop().time() == 3

    run(main())
    assert "1 run(s) that ended are not told of as a whole" in caplog.text


def test_a_listener_that_cannot_follow_loses_the_oldest_and_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("perdure.engine.listeners.LONGEST_QUEUE", 3)
    heard: list[str] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), SWITCH, flaky, slow, grace=100) as engine:
            gate = asyncio.Event()

            @engine.listen(WorkflowStepCompleted)
            async def stuck(event: WorkflowStepCompleted) -> None:
                await gate.wait()
                heard.append(event.run_id)

            for number in range(8):
                await engine.run(graph("g", [task("flaky", input={"fails": 0})]), id=str(number))
                await settle()
            gate.set()

    run(main())
    assert heard == ["0", "5", "6", "7"]
    assert "lost 4 events" in caplog.text


@pytest.mark.rule("D-38", "D-15")
def test_a_report_that_comes_too_late_is_told_and_not_recorded() -> None:
    # scenario 270
    seen: list[ReportIgnored] = []

    @step(name="slow")
    async def stubborn() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return "all the same"

    g = graph("g", [task("slow")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, stubborn) as engine:
            engine.listen(ReportIgnored)(seen.append)
            started = await engine.start(g, id="1")
            await asyncio.sleep(1)
            await started.cancel()
            await asyncio.sleep(10)

    run(main())
    (event,) = seen
    assert (event.step, event.attempt) == ("slow", 1)
    assert "ended" in event.reason


def test_a_run_that_somebody_else_started_is_told_as_started_by_whoever_takes_it_first() -> None:
    seen: list[str] = []
    g = graph("g", [task("slow"), task("again", "slow")])

    async def work(store: VirtualStore, seconds: float) -> None:
        engine = engine_on(store, g, slow, grace=0)
        engine.listen(RunEvent)(lambda event: seen.append(named(event)))
        async with engine:
            await asyncio.sleep(seconds)

    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            await client.start(g, id="1")
        await work(store, 15)
        assert seen == [
            "WorkflowStarted", "StepStarted slow", "StepCompleted slow", "StepStarted again"
        ]  # fmt: skip
        seen.clear()
        await work(store, 15)
        assert seen == [
            "StepStarted again",
            "StepCompleted again",
            "WorkflowCompleted",
        ]

    run(main())


def test_events_are_told_only_when_they_are_durable() -> None:
    heard: list[str] = []
    g = graph("g", [task("slow")])

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, g, slow) as engine:
            engine.listen(RunEvent)(lambda event: heard.append(named(event)))
            started = await engine.start(g, id="1")
            store.holding = True
            await asyncio.sleep(3600)
            assert heard == ["WorkflowStarted", "StepStarted slow"]
            store.holding = False
            store.let_go()
            await started.result()

    run(main())
    assert heard[2:] == ["StepCompleted slow", "WorkflowCompleted"]


def test_without_listeners_nothing_is_observed() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), SWITCH, flaky, slow) as engine:
            assert engine._shell.observers == []
            assert engine._shell.dispatcher.on_started is None
            engine.listen(WorkflowFailed)(lambda event: None)
            assert engine._shell.dispatcher.on_started is None, "nobody hears of attempts"

    run(main())
