"""The live view: every step of the plan from the first moment, told from the feed and, the same,
from journals; bounded, and with nothing under way in a run that ended."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import pytest

from perdure import (
    Context,
    InvalidRequest,
    RunFailed,
    Saga,
    SagaContext,
    step,
    workflow,
)
from perdure.blocking import Engine as BlockingEngine
from perdure.client.engine import Engine
from perdure.feed import (
    LiveView,
    RunView,
    WorkflowCompleted,
    WorkflowRetried,
    WorkflowStarted,
)
from perdure.model.errors import Canceled, InvalidOptions, TimedOut
from tests.unit.feed.watched import (
    Declined,
    both,
    checkout,
    coded,
    flaky,
    hush,
    live_on,
    now,
    quick,
    quiet,
    slow,
    states,
    switch,
    undo,
)
from tests.virtual.engines import client_on, engine_on, graph, killed, node, task, wait_for
from tests.virtual.loop import run, settle
from tests.virtual.stores import VirtualStore

AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.rule("S-27", "S-28", "S-29")
def test_a_saga_is_seen_whole_from_its_first_frame_to_its_end() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), checkout) as engine:
            live = live_on(engine)
            await engine.start(checkout, {"charge": 1}, id="1", metadata={"trigger": "http"})
            assert await both(live, engine, "checkout") == {
                "execution_id": "1",
                "workflow": "checkout",
                "trigger": "http",
                "steps": [
                    {"name": "reserve", "state": "running"},
                    {"name": "charge", "state": "pending"},
                    {"name": "ship", "state": "pending"},
                ],
            }
            await asyncio.sleep(4)
            told = await both(live, engine, "checkout")
            assert told["steps"] == [
                {"name": "reserve", "state": "done", "duration_ms": 1000.0},
                {"name": "charge", "state": "retrying", "attempt": 2, "error": "timeout"},
                {"name": "ship", "state": "pending"},
            ]
            await asyncio.sleep(10)
            told = await both(live, engine, "checkout")
            assert told["steps"][1] == {"name": "charge", "state": "running", "attempt": 2}
            await asyncio.sleep(2)
            told = await both(live, engine, "checkout")
            assert told["outcome"] == "completed"
            assert told["steps"] == [
                {"name": "reserve", "state": "done", "duration_ms": 1000.0},
                {"name": "charge", "state": "done", "attempt": 2, "duration_ms": 14000.0},
                {"name": "ship", "state": "done", "duration_ms": 0.0},
            ]

    run(main())


@pytest.mark.rule("S-17", "S-29")
def test_what_was_undone_is_compensated_and_what_could_not_be_stays_done() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), checkout) as engine:
            live = live_on(engine)
            payload = {"ship": True, "reserve~undo": 1, "charge~undo": 9}
            await engine.start(checkout, payload, id="1")
            await asyncio.sleep(4)
            told = await both(live, engine, "checkout")
            assert states(told) == {"reserve": "done", "charge": "done", "ship": "failed"}
            assert told["steps"][1]["undo"] == {"state": "running"}
            assert told["steps"][2] == {
                "name": "ship", "state": "failed", "attempt": 1, "error": "no carrier",
                "duration_ms": 0.0,
            }  # fmt: skip
            await asyncio.sleep(6)
            told = await both(live, engine, "checkout")
            assert told["steps"][1]["undo"] == {
                "state": "failed", "attempt": 1, "error": "bank is closed", "duration_ms": 3000.0,
            }  # fmt: skip
            assert told["steps"][0]["undo"] == {
                "state": "retrying", "attempt": 2, "error": "bank is closed",
            }  # fmt: skip
            await asyncio.sleep(100)
            told = (await engine.get("checkout", "1").view()).to_dict(now())
            assert states(told) == {"reserve": "compensated", "charge": "done", "ship": "failed"}
            assert told["steps"][0] == {
                "name": "reserve", "state": "compensated", "duration_ms": 1000.0,
            }  # fmt: skip
            assert told["steps"][1]["undo"]["state"] == "failed"
            assert told["outcome"] == "failed"

    run(main())


@pytest.mark.rule("S-28")
def test_graphs_and_workflows_are_seen_as_sagas_are() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), switch, coded, flaky, slow) as engine:
            live = live_on(engine)
            await engine.start(switch, {"no": False}, id="1")
            await engine.start(coded, 0, id="1")
            assert states(await both(live, engine, "switch")) == {
                "flaky": "running", "s": "pending", "no": "pending", "ok": "pending",
            }  # fmt: skip
            assert states(await both(live, engine, "coded")) == {"flaky": "running"}
            await asyncio.sleep(2)
            assert states(await both(live, engine, "switch")) == {
                "flaky": "done", "s": "done", "no": "skipped", "ok": "waiting",
            }  # fmt: skip
            calls = states(await both(live, engine, "coded"))
            assert list(calls.values()) == ["done", "waiting"]
            await asyncio.sleep(10)
            told = await both(live, engine, "coded")
            assert set(states(told).values()) == {"done"}
            assert told["steps"][-1]["name"] == "flaky#2"
            await engine.get("switch", "1").signal("go")
            told = await both(live, engine, "switch")
            assert states(told)["ok"] == "done"
            assert told["outcome"] == "completed"

    run(main())


@pytest.mark.rule("SX-13")
@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_nothing_is_under_way_in_a_run_that_ended(how: str) -> None:
    async def main() -> None:
        nodes = [node("all", "FORK"), task("slow"), task("flaky", input={"fails": 1})]
        nodes += [wait_for("go", "go"), task("never", "slow")]
        edges = ["all slow", "all flaky", "all go", "go never"]
        doing = graph("doing", nodes, edges, max_duration="5s")
        async with engine_on(VirtualStore(), doing, flaky, slow) as engine:
            live = live_on(engine)
            started = await engine.start(doing, {}, id="1")
            await asyncio.sleep(3)
            assert states(await both(live, engine, "doing")) == {
                "all": "done", "slow": "running", "flaky": "retrying", "go": "waiting",
                "never": "pending",
            }  # fmt: skip
            if how == "cancel":
                await started.cancel()
            with pytest.raises((Canceled, TimedOut)):
                await started.result()
            told = await both(live, engine, "doing")
            over = "canceled" if how == "cancel" else "failed"
            assert states(told) == {
                "all": "done", "slow": over, "flaky": over, "go": over, "never": "pending",
            }  # fmt: skip
            assert told["outcome"] == over

    run(main())


@pytest.mark.rule("SX-13")
def test_a_view_that_saw_something_under_way_to_the_end_shows_it_as_given_up() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    view = RunView("shop", "1")
    view.plan(["a", "b", "c", "d"])
    view.begun("a", 1, at)
    view.begun("b", 1, at)
    view.retries("b", 2, "no", None)
    view.begun("c", 1, at, at + timedelta(hours=1))
    view.begun("a~undo", 1, at)
    view.ends("failed", at + timedelta(seconds=1))
    told = view.to_dict(at + timedelta(days=1))
    assert [step["state"] for step in told["steps"]] == [
        "canceled", "canceled", "canceled", "pending",
    ]  # fmt: skip
    assert "undo" not in told["steps"][0]


@pytest.mark.rule("SX-13")
def test_runs_whose_start_was_not_seen_are_not_shown() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, switch, flaky, slow) as engine:
            await engine.start(switch, {"no": True}, id="before")
            live = live_on(engine)
            await engine.start(switch, {"no": True}, id="after")
            await asyncio.sleep(2)
            assert [view.id for view in live.runs()] == ["after"]
            assert live.get("switch", "before") is None
        async with client_on(store) as client:
            assert states(await client.get(switch, "before").view())["flaky"] == "done"

    run(main())


@pytest.mark.rule("SX-13")
def test_a_live_view_is_bounded_and_swept() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), switch, flaky, slow) as engine:
            few = live_on(engine, limit=3, keep="1m")
            forgetful = live_on(engine, quiet="5m")
            for number in range(3):
                await engine.start(switch, {"no": False}, id=str(number))
            await asyncio.sleep(2)
            await engine.get("switch", "1").signal("go")
            await settle()
            await engine.start(switch, {"no": False}, id="3")
            await settle()
            assert [view.id for view in few.runs()] == ["0", "2", "3"], "the ended one goes first"
            await engine.start(switch, {"no": False}, id="4")
            await asyncio.sleep(2)
            assert [view.id for view in few.runs()] == ["2", "3", "4"]
            await engine.get("switch", "3").signal("go")
            await settle()
            assert len(few.runs()) == 3
            await asyncio.sleep(61)
            assert [view.id for view in few.runs()] == ["2", "4"], "kept for a minute"
            assert len(forgetful.runs()) == 3
            await asyncio.sleep(300)
            assert forgetful.to_dicts() == []

    run(main())


def test_a_view_that_was_given_out_changes_no_more_and_a_limit_of_none_is_refused() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), switch, flaky, slow) as engine:
            live = live_on(engine)
            await engine.start(switch, {"no": False}, id="1")
            await settle()
            [first] = live.runs()
            await asyncio.sleep(2)
            assert states(first)["flaky"] == "running"
            with pytest.raises(InvalidOptions, match="at least 1 run"):
                live_on(engine, limit=0)
            with pytest.raises(InvalidRequest):
                engine.listen(RunView)

    run(main())


@pytest.mark.rule("S-27", "S-29")
@pytest.mark.parametrize("canceled", [None, 2, 5, 9, 14])
@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"charge": 9},
        {"charge": 1, "ship": True, "charge~undo": 1},
        {"ship": True, "reserve~undo": 1},
    ],
)
def test_at_any_moment_the_feed_and_the_journal_tell_the_same(
    payload: dict[str, Any], canceled: int | None
) -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), checkout) as engine:
            live = live_on(engine, keep="1h")
            started = await engine.start(checkout, payload, id="1")
            for second in range(70):
                told = await both(live, engine, "checkout")
                if second == canceled and "outcome" not in told:
                    await started.cancel()
                await asyncio.sleep(1)
            assert "outcome" in told
            assert not {"running", "retrying"} & set(states(told).values())

    run(main())


def test_a_child_is_a_step_under_way_until_it_ends() -> None:
    parent = graph("parent", [{"id": "c", "type": "CHILD", "spec": {"workflow": "coded"}}])

    @workflow(name="coded", max_duration="1h")
    async def child(ctx: Context) -> None:
        await flaky(0)

    async def main() -> None:
        async with engine_on(VirtualStore(), parent, child, flaky) as engine:
            live = live_on(engine)
            started = await engine.start(parent, {}, id="1")
            assert states(await both(live, engine, "parent")) == {"c": "running"}
            await started.result()
            told = await both(live, engine, "parent")
            assert told["steps"] == [{"name": "c", "state": "done", "duration_ms": 1000.0}]

    run(main())


OPEN = {"bank": False}


async def pay(ctx: SagaContext[dict[str, Any]]) -> None:
    if not OPEN["bank"]:
        raise Declined("bank is closed")


paid = (
    Saga("paid", dict[str, Any], max_duration="1h")
    .step("reserve", quick, undo=undo)
    .step("note", quick)
    .step("gift", quick, when=lambda payload: False)
    .step("pay", pay)
)


@workflow(max_duration="1h")
async def coded_pay(ctx: Context) -> None:
    await flaky(0)
    await charged()
    await ctx.sleep(5)


@step
async def charged() -> None:
    if not OPEN["bank"]:
        raise Declined("bank is closed")


payment = graph(
    "payment",
    [node("all", "FORK"), task("charged"), wait_for("ok", "go", "1h"), node("j", "JOIN"),
     task("flaky")],
    ["all charged", "all ok", "charged j", "ok j", "j flaky"],
)  # fmt: skip
asking = graph(
    "asking", [task("charged"), {"id": "c", "type": "CHILD", "spec": {"workflow": "quiet"}}]
)


@pytest.mark.rule("S-27", "S-28", "SX-13")
@pytest.mark.parametrize("seen", ["its end", "its start, long ago"])
@pytest.mark.parametrize("name", ["paid", "coded-pay", "payment", "asking"])
def test_a_run_that_is_retried_after_its_end_is_shown_again(name: str, seen: str) -> None:
    """As its journal tells it; of one that was forgotten, how long steps took is not known."""

    async def same(live: LiveView, engine: Engine) -> dict[str, str]:
        if seen == "its end":
            return states(await both(live, engine, name))
        await settle()
        view = live.get(name, "1")
        assert view is not None
        assert states(view) == states(await engine.get(name, "1").view())
        return states(view)

    async def main() -> None:
        OPEN["bank"] = False
        things = (paid, coded_pay, payment, asking, quiet, hush, flaky, charged)
        async with engine_on(VirtualStore(), *things) as engine:
            live = live_on(engine, keep="1m")
            metadata = {"trigger": "http"}
            started = await engine.start(
                name, None if name == "coded-pay" else {}, id="1", metadata=metadata
            )
            if name == "payment":
                await started.signal("go")
            with pytest.raises((RunFailed, Declined)):
                await started.result()
            await both(live, engine, name)
            if seen != "its end":
                await asyncio.sleep(100)
                assert live.runs() == []
            await started.retry(failed=True)
            await asyncio.sleep(0.5)
            await same(live, engine)
            with pytest.raises((RunFailed, Declined)):
                await started.result()
            await same(live, engine)
            OPEN["bank"] = True
            await started.retry(failed=True)
            for _ in range(10):
                await same(live, engine)
                await asyncio.sleep(0.7)
            last = await same(live, engine)
            assert set(last.values()) <= {"done", "skipped"}
            view = live.get(name, "1")
            assert view is not None
            assert (view.outcome, view.trigger) == ("completed", "http")
            assert view.version == (await started.describe()).version

    run(main())


def test_a_retry_is_told_by_whoever_goes_on_with_the_run_also_where_another_died_of_it() -> None:
    heard: list[WorkflowRetried] = []

    async def main() -> None:
        OPEN["bank"] = False
        store = VirtualStore()
        async with engine_on(store, paid) as engine:
            started = await engine.start(paid, {}, id="1")
            with pytest.raises(Declined):
                await started.result()
        async with client_on(store) as client:
            await client.get(paid, "1").retry(failed=True)
        async with killed(store, paid):
            await asyncio.sleep(0.5)  # at its first step again
        last = engine_on(store, paid)
        last.listen(WorkflowRetried)(heard.append)
        async with last:
            await asyncio.sleep(1000)
        assert (await store.actions("paid", "1")).count("Claimed") == 1

    run(main())
    [event] = heard
    assert (event.steps, event.standing) == (paid.planned, {}), "its first step was undone"


@pytest.mark.rule("SX-13")
@pytest.mark.parametrize(
    "read", [LiveView.to_dicts, LiveView.runs, lambda live: live.get("a", "1")]
)
def test_whoever_reads_never_keeps_the_engine_waiting_and_nothing_told_meanwhile_is_lost(
    read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []

    class Told:
        def listen(self, event: Any) -> Any:
            return heard.append

    live = LiveView(Told(), now=lambda: AT)
    [hear] = heard
    for n in range(3):
        hear(WorkflowStarted(workflow="a", run_id=str(n), time=AT, version="1", steps=("s",)))
    reads, told = Event(), Event()

    def slow(*_: Any) -> Any:
        reads.set()
        assert told.wait(10), "the engine waits for a reader"

    with monkeypatch.context() as patched:
        patched.setattr(RunView, "copied", slow)
        patched.setattr(RunView, "to_dict", slow)
        reader = Thread(target=read, args=(live,))
        reader.start()
        reads.wait()
        engine = Thread(target=hear, args=(WorkflowCompleted(workflow="a", run_id="1", time=AT),))
        engine.start()
        engine.join(5)
        waits = engine.is_alive()
        told.set()
        reader.join()
    assert not waits
    assert {view.id: view.outcome for view in live.runs()} == {"0": "", "1": "completed", "2": ""}


def test_a_copy_of_a_view_shares_nothing_with_it() -> None:
    view = RunView("shop", "1")
    view.plan(["a", "b"])
    view.begun("a~undo", 1, AT)
    copy = view.copied()
    before = copy.copied()
    view.done("a~undo", AT)
    view.begun("b", 1, AT)
    view.begun("c", 1, AT)
    assert copy == before != view


def test_a_synchronous_program_has_a_live_view_as_well() -> None:
    with BlockingEngine("memory:", [quiet]) as engine:
        live = LiveView(engine)
        assert engine.run(quiet, id="1") == "done"
    [view] = live.runs()
    assert [step.state for step in view.steps.values()] == ["done"]
    assert view.outcome == "completed"
