"""Records of runs that ended, and what is told of undoing: for listeners, and for telemetry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure import Context, Retry, RunFailed, Saga, SagaContext, step, workflow
from perdure.engine.worker.records import AT_ONCE
from perdure.feed import (
    RunEvent,
    WorkflowCanceled,
    WorkflowCompensationCompleted,
    WorkflowCompensationFailed,
    WorkflowCompensationStarted,
    WorkflowFailed,
    WorkflowFinished,
    WorkflowRecord,
    WorkflowStarted,
    WorkflowTimedOut,
)
from perdure.model.errors import Canceled, StoreError, TimedOut
from perdure.stores.paging import PAGE
from tests.virtual.collecting import collecting
from tests.virtual.engines import client_on, engine_on
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore

Payload = dict[str, Any]


async def quick(ctx: SagaContext[Payload]) -> str:
    await asyncio.sleep(1)
    return "a secret"


async def ship(ctx: SagaContext[Payload]) -> None:
    await asyncio.sleep(ctx.payload.get("seconds", 0))
    if ctx.payload.get("ship"):
        raise OSError("no carrier")


async def undo(ctx: SagaContext[Payload]) -> None:
    await asyncio.sleep(3)
    if ctx.attempt <= ctx.payload.get(ctx.node, 0):
        raise OSError("bank is closed")


checkout = (
    Saga("checkout", Payload, max_duration="20s")
    .step("reserve", quick, undo=undo, undo_retry=Retry(2, initial=20))
    .step("note", quick)
    .step("charge", quick, undo=undo)
    .step("ship", ship, timeout="1h")
)


@step
async def work(text: str) -> str:
    return text


@workflow(max_duration="1h")
async def coded(ctx: Context, text: str) -> str:
    await ctx.sleep(10)
    return await work(text)


def named(event: RunEvent) -> str:
    return f"{type(event).__name__} {getattr(event, 'step', '')}".strip()


async def heard_of(payload: Payload, *, cancel: bool = False) -> list[RunEvent]:
    """What is told of a run of the saga, all but its steps' events."""
    seen: list[RunEvent] = []
    kinds = (WorkflowStarted, WorkflowFinished, WorkflowCompensationStarted)
    kinds += (WorkflowCompensationCompleted, WorkflowCompensationFailed)  # type: ignore[assignment]
    async with engine_on(VirtualStore(), checkout) as engine:
        engine.listen(RunEvent)(lambda e: seen.append(e) if isinstance(e, kinds) else None)
        started = await engine.start(checkout, payload, id="1")
        if cancel:
            await asyncio.sleep(5)
            await started.cancel("not wanted")
        with pytest.raises((RunFailed, Canceled, TimedOut)):
            await started.result()
        await settle()
    return seen


@pytest.mark.rule("S-25", "SX-10")
def test_a_saga_that_fails_tells_its_plan_and_what_is_undone() -> None:
    seen = run(heard_of({"ship": True}))
    begun, undoing, undone, failed = seen
    assert isinstance(begun, WorkflowStarted)
    assert isinstance(undoing, WorkflowCompensationStarted)
    assert isinstance(undone, WorkflowCompensationCompleted)
    assert isinstance(failed, WorkflowFailed)
    assert not isinstance(failed, WorkflowTimedOut)
    assert begun.steps == ("reserve", "note", "charge", "ship")
    assert undoing.steps == undone.steps == ("charge", "reserve")
    assert (undoing.reason, failed.step) == ("failure", "ship")
    assert "no carrier" in undoing.failure.message
    assert failed.failure.message == undoing.failure.message


@pytest.mark.rule("S-16")
def test_an_undo_that_fails_for_good_pages_somebody_once_and_the_others_are_made() -> None:
    seen = run(heard_of({"ship": True, "charge~undo": 9, "reserve~undo": 1}))
    assert [named(event) for event in seen] == [
        "WorkflowStarted",
        "WorkflowCompensationStarted",
        "WorkflowCompensationFailed charge",
        "WorkflowFailed ship",
    ]
    failed = seen[2]
    assert isinstance(failed, WorkflowCompensationFailed)
    assert not isinstance(failed, WorkflowFinished), "the run goes on"
    assert (failed.run_id, failed.workflow) == ("1", "checkout")
    assert failed.failure.message == "bank is closed"


@pytest.mark.parametrize(("cancel", "end"), [(True, WorkflowCanceled), (False, WorkflowTimedOut)])
def test_a_cancel_and_a_deadline_say_why_they_undo(
    cancel: bool, end: type[WorkflowFinished]
) -> None:
    seen = run(heard_of({"seconds": 1000}, cancel=cancel))
    undoing = seen[1]
    assert isinstance(undoing, WorkflowCompensationStarted)
    assert undoing.reason == ("cancel" if cancel else "timeout")
    assert isinstance(seen[2], WorkflowCompensationCompleted)
    assert type(seen[3]) is end


@pytest.mark.rule("S-26")
def test_a_run_that_ended_is_told_in_one_piece_with_a_span_for_each_step() -> None:
    seen: list[WorkflowRecord] = []

    async def main() -> None:
        async with engine_on(VirtualStore(), checkout) as engine:
            engine.listen(WorkflowRecord)(seen.append)
            with pytest.raises(RunFailed):
                await engine.run(
                    checkout, {"ship": True, "reserve~undo": 1}, id="1",
                    metadata={"trigger": "http"},
                )  # fmt: skip
            await settle()

    run(main())
    [record] = seen
    assert (record.workflow, record.run_id, record.trigger) == ("checkout", "1", "http")
    assert (record.outcome, record.version) == ("failed", checkout.version)
    assert record.failure is not None
    assert (record.ended - record.started).total_seconds() == 32
    assert [
        (s.name, s.state, s.attempts, s.error, s.ended and s.started and
         (s.ended - s.started).total_seconds())
        for s in record.steps
    ] == [
        ("reserve", "compensated", 1, "", 1),
        ("reserve~undo", "done", 2, "", 26),
        ("note", "done", 1, "", 1),
        ("charge", "compensated", 1, "", 1),
        ("charge~undo", "done", 1, "", 3),
        ("ship", "failed", 1, "no carrier", 0),
    ]  # fmt: skip
    assert "secret" not in repr(record)


@pytest.mark.rule("S-26")
def test_a_record_is_whole_also_where_others_did_a_part_and_the_store_does_not_answer() -> None:
    seen: list[WorkflowRecord] = []

    class Moody(VirtualStore):
        refusals = 0

        async def rows(self, key: bytes, after: int, limit: int) -> Any:
            if self.refusals:
                self.refusals -= 1
                raise StoreError("busy elsewhere")
            return await super().rows(key, after, limit)

    async def main() -> None:
        store = Moody()
        async with client_on(store) as client:
            await client.start(coded, "hello", id="1")
        async with engine_on(store, coded, work, grace=0):
            await asyncio.sleep(5)
        async with engine_on(store, coded, work) as engine:
            engine.listen(WorkflowRecord)(seen.append)
            store.refusals = 3
            assert await engine.get(coded, "1").result() == "hello"
        assert store.refusals == 0

    run(main())
    [record] = seen
    assert record.outcome == "completed"
    assert record.failure is None
    assert [(s.state, s.attempts) for s in record.steps] == [("done", 0), ("done", 1)]
    assert record.steps[1].name == "work"


def test_nobody_reads_journals_where_nobody_wants_records() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, coded, work) as engine:
            engine.listen(RunEvent)(lambda event: None)
            store.rows = None  # type: ignore[method-assign,assignment]
            assert await engine.run(coded, "hello", id="1") == "hello"
            assert engine._shell.feed.records._making == set()

    run(main())


@pytest.mark.rule("S-26", "W-58")
@pytest.mark.parametrize(
    ("payload", "cancel", "told"),
    [
        ({}, False, ("run checkout", "ok")),
        ({"ship": True}, False, ("run checkout", "error", "failed")),
        ({"seconds": 1000}, False, ("run checkout", "error", "timeout")),
        ({"seconds": 1000}, True, ("run checkout", "canceled")),
    ],
)
def test_a_run_is_one_span_of_the_trace_of_its_start(
    payload: Payload, cancel: bool, told: tuple[str, ...]
) -> None:
    with collecting() as seen:

        async def main() -> None:
            async with engine_on(LateStore(), checkout, telemetry=seen.telemetry) as engine:
                started = await engine.start(checkout, payload, id="1")
                await asyncio.sleep(5)
                if cancel:
                    await started.cancel()
                await asyncio.sleep(3600)

        run(main())
        [start], [whole] = seen.spans("start"), seen.spans("run")
        assert seen.told("run") == [told]
        assert whole.parent is not None
        assert start.context is not None
        assert whole.parent.span_id == start.context.span_id
        assert whole.start_time is not None
        assert whole.end_time is not None
        assert whole.end_time - whole.start_time >= 3_000_000_000
        assert seen.counts()[("run", *told[1:])] == 1


@step
async def count(n: int) -> int:
    return n


@workflow(max_duration="1h")
async def long(ctx: Context, calls: int) -> None:
    for n in range(calls):
        await count(n)


@pytest.mark.rule("S-26")
def test_of_a_journal_of_any_length_a_page_is_held_at_a_time_and_few_journals_are() -> None:
    pages: list[int] = []
    seen: list[WorkflowRecord] = []
    reading: list[int] = []

    class Slow(VirtualStore):
        now_reading = 0

        async def rows(self, key: bytes, after: int, limit: int) -> Any:
            self.now_reading += 1
            reading.append(self.now_reading)
            await asyncio.sleep(0.1)
            self.now_reading -= 1
            if len(pages) == 30:
                pages.append(0)
                raise StoreError("in the middle")
            rows = await super().rows(key, after, limit)
            pages.append(len(rows))
            return rows

    async def main() -> None:
        store = Slow()
        async with engine_on(store, long, count) as engine:
            engine.listen(WorkflowRecord)(seen.append)
            await asyncio.gather(
                *[engine.run(long, 30 * PAGE if n == 0 else 1, id=str(n)) for n in range(50)]
            )
            await asyncio.sleep(100)

    run(main())
    assert sorted(record.run_id for record in seen) == sorted(map(str, range(50)))
    steps = {record.run_id: [s.state for s in record.steps] for record in seen}
    assert steps["0"] == ["done"] * 30 * PAGE
    assert max(pages) <= PAGE
    assert len(pages) > 75, "they were read in pages"
    assert max(reading) == AT_ONCE


@pytest.mark.rule("S-28")
def test_history_and_view_read_a_long_journal_page_by_page() -> None:
    asked: list[int] = []

    class Counting(VirtualStore):
        async def rows(self, key: bytes, after: int, limit: int) -> Any:
            asked.append(limit)
            return await super().rows(key, after, limit)

    async def main() -> None:
        async with engine_on(Counting(), long, count) as engine:
            await engine.run(long, 3 * PAGE, id="1")
            handle = engine.get(long, "1")
            records = [record async for record in handle.history()]
            done = [record["node"] for record in records if record["do"] == "CompleteTask"]
            assert len(done) == len(set(done)) == 3 * PAGE
            assert len((await handle.view()).steps) == 3 * PAGE

    run(main())
    assert set(asked) == {PAGE}
    assert len(asked) >= 8
