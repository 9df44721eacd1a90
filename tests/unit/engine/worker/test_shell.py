"""Shell: starting, closing, deadlines and retries of one worker's engine."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.flow.context import Context
from perdure.flow.step import step
from perdure.flow.workflow import workflow
from perdure.model.driving import StartRequest
from perdure.model.errors import (
    AlreadyStarted,
    Failure,
    InvalidRequest,
    PerdureError,
    StoreError,
    TimedOut,
)
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from perdure.stores.answers import StartDone, Started
from perdure.stores.rows import NewRun
from tests.virtual.engines import client_on, engine_on, graph, node, task
from tests.virtual.loop import VirtualClock, run, settle
from tests.virtual.stores import LateStore, PromptStore, VirtualStore, down


@step
async def work(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return "done"


ONE = graph("one", [task("a", "work")])
SLOW = graph("slow", [task("a", "work", {"seconds": 10}), task("b", "work", {"seconds": 10})])


# -------------------------------------------------------------------------------------- starting


@pytest.mark.rule("D-19", "W-17")
def test_concurrent_starts_of_one_id_have_one_winner() -> None:
    async def main() -> None:
        async with engine_on(LateStore(), ONE, work) as engine:
            starts = [engine.start(ONE, {"n": i}, id="same") for i in range(10)]
            answers = await asyncio.gather(*starts, return_exceptions=True)
            (winner,) = [a for a in answers if not isinstance(a, BaseException)]
            losers = [a for a in answers if isinstance(a, AlreadyStarted)]
            assert len(losers) == 9
            for loser in losers:
                assert await loser.run.result() == {"a": "done"}
            assert await winner.result() == {"a": "done"}

    run(main())


@pytest.mark.rule("D-19")
def test_an_existing_run_is_joined_where_that_is_asked_for() -> None:
    made: list[Any] = []

    @step
    async def note(n: int) -> int:
        made.append(n)
        await asyncio.sleep(10)
        return n

    g = graph("g", [task("a", "note", {"n": "{{input.n}}"})])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, note) as engine:
            first = asyncio.ensure_future(engine.run(g, {"n": 1}, idempotency_key="k"))
            await asyncio.sleep(5)
            assert await engine.run(g, {"n": 2}, idempotency_key="k") == {"a": 1}
            assert await first == {"a": 1}
            assert await engine.run(g, {"n": 3}, idempotency_key="k") == {"a": 1}
            await engine.start(g, {"n": 4}, id="k", if_exists="join")
            with pytest.raises(AlreadyStarted):
                await engine.start(g, {"n": 5}, id="k")
        assert made == [1]

    run(main())


@pytest.mark.rule("G-98")
def test_a_start_that_is_refused_writes_nothing() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE, work) as engine:
            with pytest.raises(InvalidRequest, match="nowhere"):
                await engine.start(ONE, id="1", start_node="nowhere")
            with pytest.raises(InvalidRequest, match="NaN"):
                await engine.start(ONE, {"x": float("nan")}, id="1")
            with pytest.raises(InvalidRequest, match="metadata"):
                await engine.start(ONE, id="1", metadata={"k": 1})  # type: ignore[dict-item]
            assert [info async for info in engine.runs()] == []

    run(main())


def test_a_start_goes_on_trying_while_the_store_is_away_and_exists_once() -> None:
    async def main(written: bool) -> None:
        store = LateStore()
        store.written_all_the_same = written
        async with engine_on(store, ONE, work) as engine:
            store.failures.extend(down(4))
            started = await engine.start(ONE, id="1")
            assert await started.result() == {"a": "done"}

    run(main(False))
    run(main(True))


def test_a_caller_that_goes_away_while_starting_does_not_lose_the_run() -> None:
    async def main() -> None:
        async with engine_on(LateStore(), ONE, work) as engine:
            starting = asyncio.ensure_future(engine.start(ONE, id="1"))
            await settle()
            starting.cancel()
            await asyncio.sleep(1)
            assert await engine.get(ONE, "1").result() == {"a": "done"}

    run(main())


def test_a_delayed_start_runs_at_its_time_whoever_works_then() -> None:
    at: list[float] = []

    @step
    async def note() -> None:
        at.append(asyncio.get_running_loop().time())

    g = graph("g", [task("note")], max_duration="1h")

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, note) as engine:
            await engine.start(g, id="1", delay="2h")
            await engine.start(g, id="2", delay=10)
            await asyncio.sleep(3600)
        async with engine_on(store, g, note) as engine:
            await engine.get(g, "1").result()

    run(main())
    assert at[0] == pytest.approx(10, abs=0.5)
    assert at[1] == pytest.approx(7200, abs=0.5)


def test_runs_started_by_a_client_without_an_engine_are_claimed() -> None:
    # scenario 100
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            early = await client.start(ONE, id="early")
            async with engine_on(store, ONE, work) as engine:
                assert await engine.resume() == 1
                late = await client.start(ONE, id="late")
                assert await early.result() == await late.result() == {"a": "done"}

    run(main())


# --------------------------------------------------------------------------------------- closing


def test_running_attempts_may_end_within_the_grace_period_and_nothing_new_begins() -> None:
    # scenario 118
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, SLOW, work, grace=30) as engine:
            await engine.start(SLOW, id="1")
            await asyncio.sleep(1)
        assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.1)
        names = await store.actions("slow", "1")
        assert "CompleteTask a" in names
        assert "CompleteTask b" not in names
        async with engine_on(store, SLOW, work) as engine:
            assert await engine.get(SLOW, "1").result() == {"b": "done"}
        names = await store.actions("slow", "1")
        assert names.count("CompleteTask a") == 1

    run(main())


def test_closing_changes_no_durable_status() -> None:
    # scenarios 39, 91
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, SLOW, work, grace=1) as engine:
            await engine.start(SLOW, id="1")
            await asyncio.sleep(5)
            before = await store.actions("slow", "1")
        assert await store.actions("slow", "1") == before
        row = await store.describe("slow", "1")
        assert (row.status, row.owner, row.stalled, row.crashes) == ("running", None, None, 0)
        async with engine_on(store, SLOW, work) as engine:
            assert await engine.resume() == 1
            assert await engine.get(SLOW, "1").result() == {"b": "done"}

    run(main())


def test_an_attempt_that_outlives_the_grace_period_is_cancelled_and_runs_again() -> None:
    ended: list[tuple[int, float]] = []

    @step
    async def long() -> str:
        context = current_step()
        try:
            await asyncio.sleep(40)
        finally:
            ended.append((context.attempt, asyncio.get_running_loop().time()))
        return "done"

    g = graph("g", [task("long")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, long, grace=5) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(1)
        assert asyncio.get_running_loop().time() == pytest.approx(6)
        async with engine_on(store, g, long) as engine:
            assert await engine.get(g, "1").result() == {"long": "done"}

    run(main())
    assert ended == [(1, 6), (1, 46)]


def test_closing_while_the_store_is_away_ends_and_says_what_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, SLOW, work, grace=3) as engine:
            await engine.start(SLOW, id="1")
            store.failures.extend(down(10_000))
            await asyncio.sleep(11)
            starting = asyncio.ensure_future(engine.start(SLOW, id="2"))
            await settle()
        assert asyncio.get_running_loop().time() < 20
        with pytest.raises(PerdureError, match="whether the run was started is not known"):
            await starting
        assert engine._shell.unrecorded == [f"{SLOW.name}/1"]
        sent = len(store.sent)
        await asyncio.sleep(1000)
        assert len(store.sent) == sent, "a closed engine still writes"
        store.failures.clear()
        store.crash(engine._shell.worker)
        async with engine_on(store, SLOW, work) as engine:
            assert await engine.get(SLOW, "1").result() == {"b": "done"}
        assert engine._shell.unrecorded is None

    run(main())
    said = f"did not take the last rows of {SLOW.name}/1: what they say is not recorded"
    assert said in caplog.text


def test_code_whose_start_is_not_known_to_be_recorded_is_closed_with_the_engine() -> None:
    closed: list[str] = []

    @workflow(max_duration=None)
    async def waits(ctx: Context) -> str:
        try:
            return await work()
        finally:
            closed.append("closed")

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, waits, work, grace=0) as engine:
            store.holding = True
            starting = asyncio.ensure_future(engine.start(waits))
            await settle()
        assert closed == ["closed"]
        with pytest.raises(PerdureError, match="whether the run was started is not known"):
            await starting
        store.let_go()
        await settle()
        assert engine._shell.live == {}

    run(main())


def test_who_waits_is_told_that_the_engine_closes() -> None:
    # scenario 30: waiting never owned the run.
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, SLOW, work, grace=0) as engine:
            started = await engine.start(SLOW, id="1")
            waiting = asyncio.ensure_future(started.result())
            await asyncio.sleep(1)
        with pytest.raises(PerdureError, match="closed"):
            await waiting
        with pytest.raises(PerdureError, match="closed"):
            engine._shell.starts.start(None)  # type: ignore[arg-type]

    run(main())


def test_a_start_that_the_store_refuses_at_once_is_told_so_and_leaves_nothing_behind() -> None:
    class Picky(VirtualStore):
        refuses = True

        def start(self, runs: Sequence[NewRun], done: StartDone) -> None:
            if self.refuses:
                done(InvalidRequest("no column holds it"))
            else:
                super().start(runs, done)

    async def main() -> None:
        store = Picky()
        async with engine_on(store, ONE, work) as engine:
            with pytest.raises(InvalidRequest, match="no column holds it"):
                await asyncio.wait_for(engine.start(ONE, id="1"), 60)
            assert not engine._shell.in_hand
            assert not engine._shell.live
            store.refuses = False
            assert await engine.run(ONE, id="1") == {"a": "done"}

    run(main())


def test_starts_that_fill_a_batch_are_answered_while_the_last_of_them_is_handed_over() -> None:
    async def main() -> None:
        async with engine_on(PromptStore(), SLOW, work) as engine:
            shell, most = engine._shell, 8
            shell.starts.lane._most = most  # of few answers all are told at once
            asked = [StartRequest(SLOW, f"r{i}", None) for i in range(most)]
            answers: list[Any] = [shell.starts.start(one) for one in asked]
            assert isinstance(answers[-1], Started)
            others = [future.result() for future in answers[:-1]]
            assert {one.outcome for one in (*others, answers[-1])} == {"created"}
            assert not shell.in_hand
            assert len(shell.live) == most

    run(main())


def test_an_engine_that_cannot_open_leaves_nothing_running() -> None:
    class Broken(VirtualStore):
        async def claim_runs(self, *args: Any) -> Any:
            claims = await super().claim_runs(*args)
            if self.broken:
                raise StoreError("the disk went away after it answered once")
            self.broken = True
            return claims * 1 if len(claims) < 100 else claims

        broken = False

    async def main() -> None:
        store = Broken()
        async with client_on(store) as client:
            for i in range(120):
                await client.start(SLOW, id=f"r{i}")
        with pytest.raises(StoreError):
            async with engine_on(store, SLOW, work):
                raise AssertionError("opened")
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert others == set()
        Broken.claim_runs = VirtualStore.claim_runs  # type: ignore[method-assign]
        async with engine_on(store, SLOW, work) as engine:
            assert await engine.get(SLOW, "r7").result() == {"b": "done"}

    run(main())


# ------------------------------------------------------------------------------ deadlines, retries


@pytest.mark.rule("D-1")
def test_a_run_that_reaches_its_deadline_fails_with_kind_workflow_timeout() -> None:
    seen: list[str] = []

    @step(timeout=None)
    async def endless() -> None:
        try:
            await asyncio.sleep(10**6)
        finally:
            seen.append("ended")

    g = graph("g", [node("fork", "FORK"), task("a", "endless"), task("b", "endless")],
              ["fork a", "fork b"], max_duration="1h")  # fmt: skip

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, endless) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(TimedOut) as raised:
                await started.result()
            assert raised.value.kind == "workflow.timeout"
            assert asyncio.get_running_loop().time() == pytest.approx(3600)
            assert await started.status() == "failed"
            await settle()
            assert seen == ["ended", "ended"]

    run(main())


def test_a_deadline_counts_on_while_nobody_works() -> None:
    g = graph("g", [task("a", "work", {"seconds": 50})], max_duration="1h")

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, g, work, grace=0) as engine:
            await engine.start(g, id="1")
            await asyncio.sleep(1)
        await asyncio.sleep(7200)
        async with engine_on(store, g, work) as engine:
            with pytest.raises(TimedOut, match="max_duration"):
                await engine.get(g, "1").result()

    run(main())


@pytest.mark.rule("G-41", "D-35")
def test_failed_attempts_are_made_again_after_growing_delays() -> None:
    # scenarios 58, 64
    at: list[float] = []

    @step(retry=Retry(6, initial=1, factor=3, max_delay=20))
    async def flaky() -> str:
        at.append(asyncio.get_running_loop().time())
        if len(at) < 6:
            raise Failure("not yet")
        return "at last"

    g = graph("g", [task("flaky")])

    async def main() -> None:
        async with engine_on(LateStore(latency=0), g, flaky) as engine:
            assert await engine.run(g) == {"flaky": "at last"}
            assert engine._shell.live == {}

    run(main())
    waits = [round(b - a, 3) for a, b in itertools.pairwise(at)]
    assert waits == [1, 3, 9, 20, 20]


@pytest.mark.rule("D-16")
def test_a_permanent_failure_ends_the_attempts_and_the_branches_go_on_to_their_end() -> None:
    made: list[str] = []

    @step(retry=5)
    async def fail() -> None:
        made.append("fail")

        class Gone(Failure, kind="gone", permanent=True):
            pass

        raise Gone("for good")

    @step
    async def other(name: str) -> None:
        await asyncio.sleep(5)
        made.append(name)

    g = graph(
        "g",
        [node("fork", "FORK"), task("fail"), task("x", "other", {"name": "x"}),
         task("y", "other", {"name": "y"})],
        ["fork fail", "fork x", "x y"],
    )  # fmt: skip

    async def main() -> None:
        async with engine_on(VirtualStore(), g, fail, other) as engine:
            with pytest.raises(Failure, match=r"node fail failed: for good") as raised:
                await engine.run(g)
            assert raised.value.kind == "gone"
        assert made == ["fail", "x", "y"]

    run(main())


@pytest.mark.rule("D-16", "G-43")
def test_every_attempt_has_its_own_timeout_and_the_same_input() -> None:
    # scenario 278
    seen: list[Any] = []

    @step(timeout=10, retry=Retry(3, initial=1))
    async def slow(box: list[int]) -> None:
        seen.append(list(box))
        box.append(1)  # its own copy
        await asyncio.sleep(11)

    g = graph("g", [task("slow", input={"box": "{{input.box}}"})])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, slow) as engine:
            with pytest.raises(TimedOut):
                await engine.run(g, {"box": [7]})
            assert asyncio.get_running_loop().time() == pytest.approx(10 + 1 + 10 + 2 + 10)

    run(main())
    assert seen == [[7]] * 3


# ------------------------------------------------------------------------------------- observers


def test_observers_see_what_became_durable_and_their_errors_change_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[str] = []

    class Good:
        def entered(self, live: Any, run: Any) -> None:
            seen.append("entered")

        def recorded(self, live: Any, transition: Any) -> None:
            seen.extend(type(action).__name__ for action in transition.actions)

    class Bad:
        def entered(self, live: Any, run: Any) -> None:
            raise RuntimeError("not my day")

        def recorded(self, live: Any, transition: Any) -> None:
            raise RuntimeError("not my day")

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, ONE, work) as engine:
            engine.observe(Bad())
            engine.observe(Good())
            store.holding = True
            waiting = asyncio.ensure_future(engine.run(ONE))
            await asyncio.sleep(1)
            assert seen == []
            store.let_go()
            store.holding = False
            assert await waiting == {"a": "done"}

    with caplog.at_level(logging.ERROR):
        run(main())
    assert seen == ["entered", "OpenRun", "CreateTask", "DispatchTask", "CompleteTask", "FinishRun"]
    assert "an observer failed" in caplog.text


@pytest.mark.rule("G-103")
def test_ids_grow_whatever_the_clock_does() -> None:
    from perdure.engine.ids import Ids

    async def main() -> None:
        clock = VirtualClock()
        ids = Ids(clock.now)
        made = []
        for skew in (0, 0, 5_000_000, -3_600_000_000, 0, 1):
            clock.skew = skew
            made += [ids.text() for _ in range(100)]
        assert made == sorted(made)
        assert len(set(made)) == len(made)
        assert all(len(id) == 36 and id[14] == "7" and id[19] in "89ab" for id in made)

    run(main())
