"""Run: results and failures as their callers see them, from any process."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.model.errors import Failure, RunFailed, TimedOut
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.virtual.engines import client_on, engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


class CardDeclined(Failure, kind="run.card-declined", permanent=True):
    """No more tries: the bank said no."""


@step
async def work(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return "done"


@step(retry=Retry(2, initial=0))
async def fail(how: str) -> None:
    if how == "declined":
        raise CardDeclined("no funds", details={"code": 51})
    if how == "error":
        raise ValueError("not a number")
    await asyncio.sleep(1000)


ONE = graph("one", [task("a", "work", {"seconds": 10})])
BAD = graph("bad", [task("a", "fail", {"how": "{{input.how}}"})])


# --------------------------------------------------------------------------------------- results


def test_a_wait_that_is_bounded_ends_and_the_run_goes_on() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), ONE, work) as engine:
            started = await engine.start(ONE, id="1")
            with pytest.raises(TimedOut, match=r"one/1 did not end within 4 s; it goes on"):
                await started.result(timeout=4)
            assert asyncio.get_running_loop().time() == 4
            assert await started.status() == "running"
            assert await started.result(timeout="1m") == {"a": "done"}
            assert asyncio.get_running_loop().time() == 10
            assert await started.result(timeout=0) == {"a": "done"}

    run(main())


def test_a_waiter_that_goes_away_changes_nothing() -> None:
    # scenarios 30, 32
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE, work) as engine, client_on(store) as client:
            await engine.start(ONE, id="1")
            handles = [engine.get(ONE, "1"), client.get(ONE, "1")]
            waits = [asyncio.ensure_future(handle.result()) for handle in handles]
            await asyncio.sleep(5)
            for wait in waits:
                wait.cancel()
            await asyncio.wait(waits)
            assert engine._native.waiters._futures == {}
            assert client._native.waiters._futures == {}
            assert await handles[0].result() == await handles[1].result() == {"a": "done"}

    run(main())


def test_everybody_who_waits_gets_the_same_result_also_from_other_processes() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE, work) as engine, client_on(store) as client:
            await engine.start(ONE, id="1")
            handles = [*[engine.get(ONE, "1")] * 20, *[client.get(ONE, "1")] * 20]
            results = await asyncio.gather(*(handle.result() for handle in handles))
            assert results == [{"a": "done"}] * 40

    run(main())


def test_a_large_output_is_the_same_from_memory_and_from_the_store() -> None:
    @step
    async def much() -> str:
        return "x" * 100_000

    g = graph("g", [task("much")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, much) as engine, client_on(store) as client:
            first = await engine.run(g, id="1")
            assert await client.get(g, "1").result() == first == {"much": "x" * 100_000}

    run(main())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_failure_comes_out_as_its_own_class_by_kind_else_as_run_failed(elsewhere: bool) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, BAD, fail) as engine, client_on(store) as other:
            client = other if elsewhere else engine

            async def result(how: str) -> Any:
                await engine.start(BAD, {"how": how}, id=how)
                return await client.get(BAD, how).result()

            with pytest.raises(CardDeclined, match="no funds") as declined:
                await result("declined")
            assert declined.value.permanent
            with pytest.raises(RunFailed, match="not a number") as failed:
                await result("error")
            assert failed.value.kind == "ValueError"
            assert str(failed.value.run) == "bad/error"
            with pytest.raises(TimedOut, match="longer than 60 s") as late:
                await result("slow")
            assert isinstance(late.value, TimeoutError)
            assert late.value.kind == "workflow.timeout"
            assert [await client.get(BAD, how).status() for how in ("declined", "error")] == [
                "failed", "failed"
            ]  # fmt: skip

    run(main())


def test_a_failed_run_is_not_taken_for_a_wait_that_was_too_long() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), BAD, fail) as engine:
            started = await engine.start(BAD, {"how": "slow"})
            with pytest.raises(TimedOut, match=r"node .* failed"):
                await started.result(timeout="1h")

    run(main())


# ----------------------------------------------------------------------------- described, history


def test_a_description_has_aware_times_and_the_failure_as_an_exception() -> None:
    async def main() -> None:
        async with engine_on(VirtualStore(), BAD, fail) as engine:
            started = await engine.start(BAD, {"how": "declined"}, id="1", metadata={"k": "v"})
            with pytest.raises(CardDeclined):
                await started.result()
            info = await started.describe()
            assert (info.id, info.workflow, info.status) == ("1", "bad", "failed")
            assert info.metadata == {"k": "v"}
            assert info.created == datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
            assert info.finished is not None
            assert info.finished.tzinfo is UTC
            assert isinstance(info.failure, CardDeclined)

    run(main())


@pytest.mark.rule("D-2")
def test_history_counts_attempts_from_1_and_shows_values_large_or_small() -> None:
    @step(retry=Retry(3, initial=0))
    async def flaky() -> str:
        if current_step().attempt < 3:
            raise Failure("not yet")
        return "x" * 5000

    g = graph("g", [task("flaky")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, flaky) as engine:
            started = await engine.start(g, {"n": 0}, id="1")
            await started.result()
            told = [dict(record) async for record in started.history()]
        assert [record["do"] for record in told] == [
            "OpenRun", "CreateTask", "DispatchTask", "RetryTask", "RetryTask", "CompleteTask",
            "FinishRun",
        ]  # fmt: skip
        attempts = [record.get("attempt") for record in told]
        assert attempts == [None, None, 1, 1, 2, 3, None]
        assert told[0]["input"] == {"n": 0}
        assert told[3]["failure"]["message"] == "not yet"
        assert told[5]["output"] == "x" * 5000
        assert told[6]["output"] == {"flaky": "x" * 5000}
        assert all(not key.endswith("_ref") for record in told for key in record)
        assert all(record["time"].tzinfo is UTC for record in told)
        assert [record["seq"] for record in told] == sorted(record["seq"] for record in told)

    run(main())


@pytest.mark.parametrize("value", [None, 0, "", [], {}, False])
def test_a_falsy_input_is_not_a_missing_one(value: Any) -> None:
    # scenario 110
    g = graph("g", [task("a", "work")], output={"in": "{{input}}"})

    async def main() -> None:
        async with engine_on(VirtualStore(), g, work) as engine:
            assert await engine.run(g, value) == {"in": value}

    run(main())
