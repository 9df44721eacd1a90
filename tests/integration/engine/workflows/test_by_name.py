"""Workflows started by their names, from a process that does not have their code."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import msgspec
import pytest

from perdure import (
    AlreadyStarted,
    Context,
    InvalidRequest,
    NotFound,
    RunFailed,
    Signal,
    TimedOut,
    step,
    workflow,
)
from perdure.conformance.rows import worker
from perdure.feed import WorkflowTimedOut
from perdure.model.durations import SECOND
from perdure.stores.answers import RunRow
from perdure.stores.port import CRASH_LIMIT
from tests.unit.flow.test_codec import Sealed
from tests.virtual.engines import client_on, engine_on
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
said = Signal("said", str)


@step
async def note(text: str) -> str:
    return text.upper()


@workflow(max_duration="1h")
async def greet(ctx: Context, name: str) -> list[Any]:
    return [await note(name), await ctx.wait(said), ctx.metadata.get("by")]


@workflow(max_duration="1h")
async def quiet(ctx: Context) -> None: ...


async def known(store: VirtualStore) -> None:
    """The store has seen a worker with the code."""
    async with engine_on(store, greet, quiet, note):
        await asyncio.sleep(1)


@pytest.mark.rule("W-24", "W-55")
@STORES
def test_what_a_worker_has_made_known_is_started_told_and_ended_by_name(
    kind: type[VirtualStore],
) -> None:
    async def main() -> None:
        store = kind()
        await known(store)
        async with client_on(store) as client:
            started = await client.start("greet", "ann", id="1", metadata={"by": "me"})
            with pytest.raises(AlreadyStarted):
                await client.start("greet", "ann", id="1")
            await started.signal(said, "early")
            await client.start("greet", "bob", id="2")
            await client.get("greet", "2").cancel("enough")
            async with engine_on(store, greet, note) as engine:
                assert await started.result() == ["ANN", "early", "me"]
                assert await engine.get(greet, "1").result() == ["ANN", "early", "me"]
                assert await client.get("greet", "2").status() == "canceled"

    run(main())


def test_an_engine_without_the_code_starts_it_too_and_leaves_it_alone() -> None:
    async def main() -> None:
        store = VirtualStore()
        await known(store)
        async with engine_on(store, quiet) as other:
            started = await other.start("greet", "ann", id="1")
            await asyncio.sleep(5)
            assert (await started.describe()).stalled is None
            await started.signal(said, "hello")
            async with engine_on(store, greet, note):
                assert await started.result() == ["ANN", "hello", None]

    run(main())


@pytest.mark.rule("W-54")
@pytest.mark.parametrize("delay", [0, 5 * 3600])
def test_its_time_counts_from_when_it_was_due_and_is_kept(delay: int) -> None:
    async def main() -> None:
        store = VirtualStore()
        await known(store)
        async with client_on(store) as client:
            started = await client.start("greet", "ann", id="1", delay=delay)
            began = (await started.describe()).created
        await asyncio.sleep(delay + 600)
        for _ in range(2):  # the second one knows it from the journal
            async with engine_on(store, greet, note):
                await asyncio.sleep(60)
        async with engine_on(store, greet, note) as engine:
            with pytest.raises(TimedOut, match="reached its max_duration"):
                await engine.get(greet, "1").result()
            ended = (await engine.get(greet, "1").describe()).finished
            assert ended is not None
            assert abs(ended - began - datetime.timedelta(seconds=delay + 3600)).seconds < 2

    run(main())


@pytest.mark.rule("W-54")
@pytest.mark.parametrize("delay", [0, 5 * 3600])
@pytest.mark.parametrize("told", [True, False], ids=["limit known", "limit not known"])
def test_nothing_of_it_begins_where_its_time_was_over_before_anybody_took_it(
    delay: int, told: bool
) -> None:
    noted: list[str] = []

    @step
    async def notes(text: str) -> str:
        noted.append(text)
        return text

    @workflow(max_duration="1h", name="greet")
    async def notes_first(ctx: Context, name: str) -> str:
        noted.append("begun")
        return await notes(name)

    async def main() -> None:
        store = VirtualStore()
        await known(store)
        if not told:  # by a worker of before
            of = await store.latest_definition("greet")
            store._definitions[of.hash] = msgspec.structs.replace(of, max_duration=None)
        async with client_on(store) as client:
            await client.start("greet", "ann", id="1", delay=delay)
            assert ((await store.describe("greet", "1")).deadline is not None) is told
        await asyncio.sleep(delay + 3601)
        engine, heard = engine_on(store, notes_first, notes), list[str]()
        engine.listen(WorkflowTimedOut)(lambda event: heard.append(event.run_id))
        async with engine:
            with pytest.raises(TimedOut, match="reached its max_duration"):
                await engine.get(notes_first, "1").result()
            await asyncio.sleep(1)
            assert heard == ["1"]
        assert await store.actions("greet", "1") == ["OpenRun", "RequestStop", "FinishRun"]

    run(main())
    assert noted == []


@pytest.mark.rule("W-54")
def test_it_ends_in_time_also_where_it_takes_down_every_worker_that_begins_it() -> None:
    async def main() -> None:
        store = VirtualStore()
        await known(store)
        async with client_on(store) as client:
            started = await client.start("greet", "ann", id="1")
            for n in range(CRASH_LIMIT + 1):
                await store.register(worker(f"w{n}"))
                assert [one.id for one in await found(store, f"w{n}")] == [started.id]
                store.crash(f"w{n}")
            await store.register(worker("last"))
            assert await found(store, "last") == []
            assert (await started.describe()).stalled is not None
            await asyncio.sleep(3600)
            async with engine_on(store, greet, note):
                with pytest.raises(TimedOut, match="reached its max_duration"):
                    await started.result()

    run(main())


async def found(store: VirtualStore, worker: str) -> list[RunRow]:
    """What a worker is given."""
    claims = await store.claim_runs(worker, ["greet"], 9)
    return [(await store.load(claim.key)).run for claim in claims]


@pytest.mark.rule("W-54")
def test_a_limit_that_its_code_says_anew_holds_for_new_runs() -> None:
    @workflow(max_duration="3h", name="greet")
    async def slower(ctx: Context, name: str) -> None: ...

    async def main() -> None:
        store = VirtualStore()
        for code, hours in ((greet, 1), (slower, 3), (greet, 1)):
            async with engine_on(store, code, note):
                await asyncio.sleep(1)
            async with client_on(store) as client, engine_on(store, quiet) as other:
                for starter in (client, other):
                    started = await starter.start("greet", "ann")
                    row = await store.describe("greet", started.id)
                    assert row.deadline == row.created + hours * 3600 * SECOND

    run(main())


def test_an_input_that_does_not_fit_fails_the_run_when_it_begins() -> None:
    async def main() -> None:
        store = VirtualStore()
        await known(store)
        async with client_on(store) as client:
            wrong = [
                await client.start("greet", 3),
                await client.start("greet"),
                await client.start("quiet", 3),
            ]
            with pytest.raises(InvalidRequest, match="start_node"):
                await client.start("greet", "ann", start_node="a")
            told = ["Expected `str`, got `int`", "got `null`", "takes no input"]
            async with engine_on(store, greet, quiet, note):
                for started, why in zip(wrong, told, strict=True):
                    with pytest.raises(RunFailed, match=why) as failed:
                        await started.result()
                    assert failed.value.kind == "InvalidRequest"

    run(main())


def test_what_nobody_has_made_known_is_not_found_with_what_to_do() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            with pytest.raises(NotFound, match="worker that has the code open the store"):
                await client.start("greet", "ann")
            await known(store)
            ended = await client.start("quiet", id="1")
            async with engine_on(store, quiet):
                assert await ended.result() is None
            with pytest.raises(NotFound, match="code that this process does not have: retry"):
                await ended.retry(failed=True)
            with pytest.raises(NotFound, match="retry the run where it is"):
                await client.get("quiet", "1").retry(failed=True)

    run(main())


def test_values_of_a_codec_are_read_by_who_has_it() -> None:
    async def main() -> None:
        store = VirtualStore()
        await known(store)
        async with engine_on(store, note, codec=Sealed()) as client:
            started = await client.start("greet", "ann", id="1")
            await started.signal(said, "sealed")
            async with engine_on(store, greet, note, codec=Sealed()):
                assert await started.result() == ["ANN", "sealed", None]

    run(main())
