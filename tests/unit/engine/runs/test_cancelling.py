"""A cancel, at any moment: the run ends canceled once; what was under way counts for nothing."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from perdure.flow.step import step
from perdure.model.errors import Canceled, InvalidRequest, NotFound
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from tests.virtual.engines import client_on, engine_on, graph, killed, node, task, wait, wait_for
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
ended: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ended() -> None:
    ended.clear()


@step(timeout=None)
async def slow(name: str = "slow") -> str:
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        ended.append(f"{name} stopped")
        raise
    ended.append(name)
    return name


@step(retry=Retry(5, initial=10))
async def flaky() -> None:
    ended.append("flaky")
    raise ValueError("no")


MIXED = graph(
    "mixed",
    [node("f", "FORK"), task("slow"), task("flaky"), wait("rest", "1h"), wait_for("ok", "go"),
     task("after", "slow", {"name": "after"})],
    ["f slow", "f flaky", "f rest", "f ok", "slow after"],
)  # fmt: skip


@STORES
@pytest.mark.rule("D-15", "G-95")
@pytest.mark.parametrize("seconds", [0, 0.0005, 5, 10, 10.0005, 15, 25])
def test_a_run_can_be_cancelled_at_any_moment(kind: type[VirtualStore], seconds: float) -> None:
    # scenarios 23, 33, 35, 37, 41
    async def main() -> None:
        store = kind()
        async with engine_on(store, MIXED, slow, flaky) as engine:
            started = await engine.start(MIXED, id="1")
            if seconds:
                await asyncio.sleep(seconds)
            await started.cancel("not needed")
            with pytest.raises(Canceled, match="not needed"):
                await started.result()
            await settle()
            before = await store.journal("mixed", "1"), list(ended)
            await asyncio.sleep(7200)
            assert (await store.journal("mixed", "1"), ended) == before, "something went on"
            assert engine._shell.live == {}
        row = await store.describe("mixed", "1")
        assert (row.status, row.owner) == ("canceled", None)
        actions = await store.actions("mixed", "1")
        assert actions.count("FinishRun") == 1

    run(main())


@pytest.mark.rule("D-15", "D-38")
def test_what_an_attempt_says_after_the_cancel_is_logged_and_not_recorded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @step(name="slow")
    async def stubborn(name: str = "") -> str:
        context = current_step()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            assert context.canceled
            await asyncio.sleep(1)
        return "finished all the same"

    g = graph("g", [task("slow")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, stubborn) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(1)
            await started.cancel()
            await asyncio.sleep(5)
            assert await started.status() == "canceled"
        assert "CompleteTask slow" not in await store.actions("g", "1")

    with caplog.at_level(logging.INFO, "perdure.engine"):
        run(main())
    assert "g/1: the run has ended" in caplog.text


@STORES
@pytest.mark.rule("D-25")
def test_cancelling_a_run_that_ended_is_quiet_and_changes_nothing(kind: type[VirtualStore]) -> None:
    g = graph("g", [task("slow")])

    async def main() -> None:
        async with engine_on(kind(), g, slow) as engine:
            started = await engine.start(g, id="1")
            await started.result()
            await started.cancel()
            assert await started.result() == {"slow": "slow"}
            with pytest.raises(NotFound, match="g/2"):
                await engine.get(g, "2").cancel()
            with pytest.raises(InvalidRequest, match="reason"):
                await started.cancel(7)  # type: ignore[arg-type]

    run(main())


def test_a_cancel_sent_twice_is_one() -> None:
    # scenario 25
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, MIXED, slow, flaky) as engine:
            started = await engine.start(MIXED, id="1")
            await asyncio.gather(*(started.cancel(f"reason {i}") for i in range(3)))
            with pytest.raises(Canceled, match="reason 0"):
                await started.result()
        assert (await store.actions("mixed", "1")).count("CancelTasks") == 1

    run(main())


def test_a_step_that_ends_at_the_moment_of_the_cancel_keeps_its_outcome_if_it_was_first() -> None:
    # scenario 33
    g = graph("g", [task("slow"), task("after", "slow", {"name": "after"})])

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, g, slow) as engine:
            started = await engine.start(g, id="1")
            store.holding = True
            await asyncio.sleep(10.1)  # it ended, and is being recorded
            await started.cancel()
            await settle()
            store.holding = False
            store.let_go()
            with pytest.raises(Canceled):
                await started.result()
        actions = await store.actions("g", "1")
        assert actions.index("CompleteTask slow") < actions.index("CancelTasks")
        assert ended[0] == "slow"

    run(main())


def test_a_parked_run_is_cancelled_and_so_is_one_that_nobody_works_on() -> None:
    async def main() -> None:
        g = graph("g", [wait_for("ok", "go")])
        store = VirtualStore()
        async with engine_on(store, g) as engine:
            first = await engine.start(g, id="1")
            await engine.start(g, id="2")
            await asyncio.sleep(60)
            assert engine._shell.live == {}
            await first.cancel()
            await settle()
            assert await first.status() == "canceled"
        async with client_on(store) as client:
            await client.get("g", "2").cancel()
            assert await client.get("g", "2").status() == "running", "nobody read it yet"
        async with engine_on(store, g) as engine:
            with pytest.raises(Canceled):
                await engine.get(g, "2").result()

    run(main())


def test_a_cancel_survives_a_crash_of_the_owner() -> None:
    # scenario 23
    async def main() -> None:
        store = LateStore()
        async with killed(store, MIXED, slow, flaky) as engine:
            started = await engine.start(MIXED, id="1")
            await asyncio.sleep(1)
            store.holding = True  # posted, and never recorded as read
            await started.cancel()
        store.holding = False
        store.held.clear()
        ended.clear()
        async with engine_on(store, MIXED, slow, flaky) as engine:
            with pytest.raises(Canceled):
                await engine.get(MIXED, "1").result()
        assert ended == [], "nothing was started again"

    run(main())


def test_a_failing_branch_that_cancels_the_others_asks_their_attempts_to_stop() -> None:
    @step
    async def bad() -> None:
        await asyncio.sleep(1)
        raise ValueError("no")

    g = graph("g", [node("f", "FORK"), task("slow"), task("bad")], ["f slow", "f bad"],
              on_failure="cancel")  # fmt: skip

    async def main() -> None:
        async with engine_on(VirtualStore(), g, slow, bad) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(Exception, match="no"):
                await started.result()
            await settle()
            assert ended == ["slow stopped"]

    run(main())


def test_a_branch_that_drains_ends_backoff_and_waits_and_lets_attempts_finish() -> None:
    @step(name="flaky", retry=Retry(5, initial="1h", max_delay="1h"))
    async def later() -> None:
        raise ValueError("not yet")

    @step
    async def bad() -> None:
        await asyncio.sleep(1)
        raise ValueError("no")

    names: Any = ["slow", "flaky", "bad"]
    g = graph("g", [node("f", "FORK"), *(task(n) for n in names), wait("rest", "1d")],
              [*(f"f {n}" for n in names), "f rest"], on_failure="drain")  # fmt: skip

    async def main() -> None:
        async with engine_on(VirtualStore(), g, slow, bad, later) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(Exception, match="no"):
                await started.result()
            assert ended == ["slow"]
            assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)

    run(main())
