"""What callers are promised of a run, from its own process and from one that only looks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from perdure.client.client import Client
from perdure.flow.step import step
from perdure.model.errors import Canceled, Failure, NotFound, RunFailed, TimedOut
from perdure.model.policy import Retry
from tests.virtual.engines import client_on, engine_on, graph, task, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

ANYWHERE = pytest.mark.parametrize("elsewhere", [False, True])


@step
async def work(seconds: float = 0.0) -> str:
    await asyncio.sleep(seconds)
    return "done"


@step
async def refuse() -> None:
    raise Failure("no", kind="shop.closed")


@step(timeout="2s")
async def hang() -> None:
    await asyncio.sleep(1000)


LONG = graph("long", [task("a", "work", {"seconds": 10})])
HEARD = graph("heard", [wait_for("w", "go")])
BAD = graph("bad", [task("a", "refuse")])
HUNG = graph("hung", [task("a", "hang")])
LATE = graph("late", [wait_for("w", "go", "2s")])
BOUND = graph("bound", [wait_for("w", "go")], max_duration="2s", retention="1h")
ALL = (LONG, HEARD, BAD, HUNG, LATE, BOUND, work, refuse, hang)


@asynccontextmanager
async def place(elsewhere: bool) -> AsyncIterator[Client]:
    """Who asks: the engine that works on the runs, or a client beside it."""
    store = VirtualStore()
    async with engine_on(store, *ALL) as engine:
        yield client_on(store) if elsewhere else engine


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.rule("W-19", "W-20")
@ANYWHERE
def test_a_result_is_the_output_or_the_error_and_the_status_is_a_word(elsewhere: bool) -> None:
    async def main() -> None:
        async with place(elsewhere) as client:
            good = await client.start(LONG, id="1")
            assert await good.status() == "running"
            with pytest.raises(TimedOut, match="did not end within 1 s"):
                await good.result(timeout=1)
            assert await good.status() == "running", "the wait was bounded, not the run"
            assert await good.result() == {"a": "done"}
            assert await good.status() == "completed"
            bad = await client.start(BAD, id="1")
            with pytest.raises(RunFailed, match="no"):
                await bad.result()
            assert await bad.status() == "failed"

    run(main())


@pytest.mark.rule("W-21", "W-22", "W-20")
@ANYWHERE
def test_a_cancel_ends_the_run_and_is_quiet_afterwards(elsewhere: bool) -> None:
    async def main() -> None:
        async with place(elsewhere) as client:
            started = await client.start(HEARD, id="1")
            await started.cancel("enough")
            with pytest.raises(Canceled, match="enough"):
                await started.result()
            assert await started.status() == "canceled"
            await started.cancel()
            assert await started.status() == "canceled"
            with pytest.raises(NotFound):
                await started.signal("go")
            nobody = client.get(HEARD, "nobody")
            for told in (nobody.cancel, lambda: nobody.signal("go"), nobody.status, nobody.result):
                with pytest.raises(NotFound, match="nobody"):
                    await told()

    run(main())


@pytest.mark.rule("W-23")
@ANYWHERE
def test_a_delayed_start_does_not_keep_its_caller_and_its_metadata_is_a_copy(
    elsewhere: bool,
) -> None:
    async def main() -> None:
        async with place(elsewhere) as client:
            metadata: dict[str, Any] = {"for": "ann"}
            started = await client.start(LONG, id="1", delay="1h", metadata=metadata)
            assert now() < 1
            metadata["for"] = "bob"
            assert await started.result() == {"a": "done"}
            assert 3610 <= now() < 3620
            assert (await started.describe()).metadata == {"for": "ann"}

    run(main())


@pytest.mark.rule("W-48", "W-54")
@ANYWHERE
@pytest.mark.parametrize("definition", [HUNG, LATE, BOUND], ids=lambda g: g.name)
def test_whatever_took_too_long_is_told_as_timed_out(definition: Any, elsewhere: bool) -> None:
    async def main() -> None:
        async with place(elsewhere) as client:
            started = await client.start(definition, id="1")
            with pytest.raises(TimedOut) as raised:
                await started.result()
            assert 2 <= now() < 3
            assert await started.status() == "failed"
            assert raised.value.kind == "workflow.timeout"
            assert isinstance((await started.describe()).failure, TimedOut)

    run(main())


@pytest.mark.rule("W-54")
def test_an_id_is_free_again_once_its_run_is_forgotten() -> None:
    async def main() -> None:
        async with place(elsewhere=False) as client:
            first = await client.start(BOUND, id="1")
            with pytest.raises(TimedOut):
                await first.result()
            await asyncio.sleep(3700)
            with pytest.raises(NotFound):
                await first.status()
            assert await (await client.start(BOUND, id="1")).status() == "running"

    run(main())


@pytest.mark.rule("W-27")
def test_a_store_in_memory_is_seen_by_nobody_else() -> None:
    async def main() -> None:
        async with Client("memory:") as one, Client("memory:") as other:
            await one.start(LONG, id="1")
            assert await one.get(LONG, "1").status() == "running"
            with pytest.raises(NotFound):
                await other.get(LONG, "1").status()

    run(main())


@pytest.mark.rule("W-10")
@pytest.mark.parametrize(("attempts", "seconds"), [(1, 0), (2, 100)])
def test_a_delay_is_waited_for_only_when_there_is_another_attempt(
    attempts: int, seconds: float
) -> None:
    @step(retry=Retry(attempts, initial=100, max_delay=None))
    async def fail() -> None:
        raise ValueError("never")

    g = graph("g", [task("a", "fail")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, fail) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(RunFailed):
                await started.result()
            assert seconds <= now() < seconds + 1

    run(main())


@pytest.mark.rule("D-19")
@pytest.mark.parametrize(("definition", "seconds"), [(LONG, 10), (BAD, 0)], ids=["good", "bad"])
def test_a_call_with_the_same_key_gets_the_first_outcome_whichever_process_works_on_it(
    definition: Any, seconds: float
) -> None:
    async def outcome(client: Client) -> Any:
        try:
            return await client.run(definition, idempotency_key="k")
        except RunFailed as error:
            return (error.kind, str(error))

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, *ALL) as engine:
            first = asyncio.ensure_future(outcome(engine))
            await asyncio.sleep(0)
            beside = await outcome(client_on(store))  # it is still at work, elsewhere
            later = await outcome(client_on(store))
            assert await first == beside == later
            assert beside == ({"a": "done"} if definition is LONG else ("shop.closed", beside[1]))
            assert seconds <= now() < seconds + 1
            actions = await store.actions(definition.name, "k")
            assert actions.count("DispatchTask a") == 1

    run(main())
