"""Client: starting, joining and listing runs; every refusal before anything is written."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure.client.client import Client
from perdure.client.run import Run
from perdure.flow.step import step
from perdure.model.errors import (
    AlreadyStarted,
    InvalidId,
    InvalidOptions,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    PerdureError,
    StoreError,
    Unsupported,
)
from perdure.stores.memory import MemoryStore
from perdure.stores.port import RunQuery
from tests.virtual.engines import client_on, engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore, down


@step
async def work() -> str:
    return "done"


ONE = graph("one", [task("a", "work")])
OTHER = graph("other", [task("a", "work")])


async def names(client: Client, **query: Any) -> list[str]:
    return [f"{info.workflow}/{info.id}" async for info in client.runs(**query)]


# -------------------------------------------------------------------------------------- starting


@pytest.mark.rule("W-16")
def test_starting_a_run_that_exists_raises_with_its_handle_also_after_its_end() -> None:
    # scenario 92
    async def main() -> None:
        async with engine_on(VirtualStore(), ONE, work) as engine:
            first = await engine.start(ONE, id="1")
            for _ in range(2):
                with pytest.raises(AlreadyStarted, match="one/1") as raised:
                    await engine.start(ONE, id="1")
                assert isinstance(raised.value.run, Run)
                assert await raised.value.run.result() == {"a": "done"}
            assert await first.status() == "completed"

    run(main())


@pytest.mark.rule("D-32")
def test_an_id_left_out_is_a_new_one_and_the_same_id_may_be_of_several_definitions() -> None:
    # scenario 92
    async def main() -> None:
        async with engine_on(VirtualStore(), ONE, OTHER, work) as engine:
            made = {(await engine.start(ONE)).id for _ in range(100)}
            assert len(made) == 100
            await engine.start(ONE, id="1")
            await engine.start(OTHER, id="1")

    run(main())


@pytest.mark.parametrize("id", ["", "a\nb", "a\x00b", "a\x7fb"])
def test_an_id_that_is_empty_or_has_control_characters_is_refused(id: str) -> None:
    async def main() -> None:
        async with client_on(VirtualStore()) as client:
            with pytest.raises(InvalidId):
                await client.start(ONE, id=id)
            with pytest.raises(InvalidRequest, match="idempotency_key"):  # the caller's to mend
                await client.run(ONE, idempotency_key=id)
            assert await names(client) == []

    run(main())


@pytest.mark.parametrize("written", [False, True])
def test_a_start_with_an_unknown_outcome_is_sent_again_and_is_one_run(written: bool) -> None:
    # scenario 271
    async def main() -> None:
        store = LateStore()
        store.written_all_the_same = written
        async with client_on(store) as client:
            store.failures.extend(down(3))
            await client.start(ONE, id="1")
            assert await names(client) == ["one/1"]
            with pytest.raises(AlreadyStarted):
                await client.start(ONE, id="1")

    run(main())


def test_a_start_whose_outcome_stays_unknown_says_so_and_how_to_go_on() -> None:
    async def main() -> None:
        store = LateStore()
        async with client_on(store) as client:
            store.failures.extend(down(100))
            with pytest.raises(StoreError, match=r"one/1 .* not known.*if_exists='join'"):
                await client.start(ONE, id="1")

    run(main())


def test_runs_are_found_by_what_their_metadata_says() -> None:
    async def main() -> None:
        async with client_on(VirtualStore()) as client:
            await client.start(ONE, id="1", metadata={"tenant": "acme", "tier": "gold"})
            await client.start(ONE, id="2", metadata={"tenant": "acme"})
            await client.start(ONE, id="3")
            assert await names(client, metadata={"tenant": "acme"}) == ["one/2", "one/1"]
            assert await names(client, metadata={"tenant": "acme", "tier": "gold"}) == ["one/1"]

    run(main())


@pytest.mark.parametrize("on", [client_on, engine_on])
def test_what_is_closed_stays_closed_and_opens_no_store_again(on: Any) -> None:
    async def main() -> None:
        store = VirtualStore()
        async with on(store) as closed:
            pass
        opened: list[str] = []

        async def open() -> None:
            opened.append("again")

        store.open = open  # type: ignore[method-assign]
        for late in (closed.start(ONE), closed.get("one", "1").status(), closed.__aenter__()):
            with pytest.raises(PerdureError, match="closed: make a new one"):
                await late
        assert opened == []

    run(main())


def test_what_cannot_be_recorded_or_understood_is_refused_before_anything_is_written() -> None:
    async def main() -> None:
        async with client_on(VirtualStore()) as client:
            with pytest.raises(InvalidRequest, match=r"\$\.at"):
                await client.start(ONE, {"at": object()})
            with pytest.raises(PayloadTooLarge):
                await client.start(ONE, {"text": "x" * 5_000_000})
            with pytest.raises(InvalidRequest, match=r"\$\.n"):
                await client.start(ONE, config={"n": float("inf")})
            with pytest.raises(InvalidOptions, match="delay"):
                await client.start(ONE, delay=-1)
            with pytest.raises(InvalidRequest, match="not both"):
                await client.run(ONE, id="1", idempotency_key="1")
            with pytest.raises(Unsupported):
                await client.start(ONE, using=object())
            assert await names(client) == []

    run(main())


@pytest.mark.rule("W-24")
def test_a_definition_by_name_is_the_one_published_last_or_not_found() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with client_on(store) as client:
            with pytest.raises(NotFound, match="one"):
                await client.start("one")
            old = graph("one", [task("old", "work")])
            await client.start(old, id="1")
            await asyncio.sleep(1)
            await client.start(ONE, id="2")
            await client.start("one", id="3")
            assert (await client.get("one", "3").describe()).version == ONE.version
            async with engine_on(store, ONE, work) as engine:
                assert await client.get("one", "1").result() == {"old": "done"}
                assert await (await engine.start("one", id="4")).result() == {"a": "done"}

    run(main())


def test_metadata_is_copied_and_kept() -> None:
    async def main() -> None:
        metadata = {"tenant": "acme"}
        async with client_on(VirtualStore()) as client:
            started = await client.start(ONE, metadata=metadata)
            metadata["tenant"] = "other"
            assert (await started.describe()).metadata == {"tenant": "acme"}

    run(main())


def test_a_store_that_is_away_is_a_store_error_and_nothing_is_lost() -> None:
    class Away(VirtualStore):
        away = True

        def start(self, runs: Any, done: Any) -> None:
            if self.away:
                done(StoreError("the disk is away"))
            else:
                super().start(runs, done)

    async def main() -> None:
        store = Away()
        async with client_on(store) as client:
            with pytest.raises(StoreError, match="away"):
                await client.start(ONE, id="1")
            store.away = False
            await client.start(ONE, id="1")
            assert await names(client) == ["one/1"]

    run(main())


# --------------------------------------------------------------------------------------- opening


@pytest.mark.rule("W-26")
def test_making_a_client_does_nothing_and_the_first_call_opens_the_store_once() -> None:
    opened = 0

    class Counting(MemoryStore):
        async def open(self) -> None:
            nonlocal opened
            opened += 1
            await asyncio.sleep(0)

    client = Client(Counting())
    assert opened == 0

    async def main() -> None:
        got = await asyncio.gather(*(names(client) for _ in range(10)))
        assert got == [[]] * 10

    asyncio.run(main())
    assert opened == 1


@pytest.mark.rule("W-18")
def test_a_handle_is_had_without_asking_the_store_and_proves_nothing() -> None:
    client = Client(MemoryStore())
    handle = client.get(ONE, "nowhere")
    assert (handle.workflow, handle.id, str(handle)) == ("one", "nowhere", "one/nowhere")
    assert client.get("one", "nowhere").workflow == "one"

    async def main() -> None:
        for call in (handle.status, handle.describe, handle.result):
            with pytest.raises(NotFound, match="nowhere"):
                await call()
        with pytest.raises(NotFound):
            [record async for record in handle.history()]
        bad = client.get("one", "")
        for call in (bad.status, bad.describe, bad.result):
            with pytest.raises(InvalidId):
                await call()

    asyncio.run(main())


# --------------------------------------------------------------------------------------- listing


def test_runs_are_listed_newest_first_over_many_pages() -> None:
    async def main() -> None:
        pages = 0

        class Counting(VirtualStore):
            async def find(self, query: RunQuery) -> Any:
                nonlocal pages
                pages += 1
                return await super().find(query)

        async with client_on(Counting()) as client:
            for i in range(230):
                await client.start(ONE, id=f"r{i}")
                if i % 3 == 0:
                    await asyncio.sleep(0.001)
            assert await names(client) == [f"one/r{i}" for i in reversed(range(230))]
            assert pages == 3

    run(main())


def test_runs_are_listed_by_workflow_status_and_time() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, ONE, work) as engine:
            await engine.run(ONE, id="done")
            await asyncio.sleep(10)
            middle = store.now()
            await engine.start(ONE, id="later", delay="1h")
            async with client_on(store) as client:
                await client.start(OTHER, id="x")
            assert await names(engine, workflow="one") == ["one/later", "one/done"]
            assert await names(engine, workflow=OTHER) == ["other/x"]
            assert await names(engine, status="completed") == ["one/done"]
            assert len(await names(engine, status=["completed", "running"])) == 3
            assert await names(engine, status=["failed", "canceled"]) == []
            since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=middle - 1)
            assert sorted(await names(engine, created_after=since)) == ["one/later", "other/x"]
            with pytest.raises(InvalidRequest, match="time zone"):
                await names(engine, created_after=datetime(2027, 1, 1))  # noqa: DTZ001

    run(main())
