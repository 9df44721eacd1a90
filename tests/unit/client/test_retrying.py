"""Retrying a run that has ended: what completed is kept, refusals are raised, nothing half done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from perdure.client.client import Client
from perdure.flow.step import step
from perdure.model.errors import (
    Canceled,
    DefinitionError,
    InvalidRequest,
    NotFound,
    RunActive,
    RunFailed,
    StoreError,
    TimedOut,
)
from perdure.stores.rows import JournalRow, Message
from tests.virtual.engines import client_on, engine_on, graph, node, task, wait_for
from tests.virtual.loop import run, settle
from tests.virtual.stores import LateStore, VirtualStore

STORES = pytest.mark.parametrize("kind", [VirtualStore, LateStore])
LARGE = "x" * 6000
made: list[Any] = []
#: Here while what fails goes on failing.
broken: set[str] = set()


@pytest.fixture(autouse=True)
def begin() -> None:
    made.clear()
    broken.add("bad")


@step
async def work(value: Any = None) -> Any:
    made.append(value)
    await asyncio.sleep(0.01)
    if value in broken:
        raise ValueError("no")
    return value


@step
async def other() -> None:
    pass


def mended() -> None:
    broken.clear()


def echo(id: str, value: Any) -> dict[str, Any]:
    return task(id, "work", {"value": value})


CHAIN = graph(
    "chain",
    [echo("a", LARGE), echo("b", "{{input.text}}"), echo("c", "{{size(tasks.a.output)}}")],
    output={"b": "{{tasks.b.output}}", "c": "{{tasks.c.output}}"},
)


async def failed(engine: Client, id: str = "1") -> Any:
    started = await engine.start(CHAIN, {"text": "bad"}, id=id)
    with pytest.raises(RunFailed, match="no"):
        await started.result()
    return started


@STORES
@pytest.mark.rule("D-8", "G-91")
@pytest.mark.parametrize("how", [{"failed": True}, {"from_node": "b"}])
def test_what_completed_is_kept_and_what_failed_is_done_again(
    kind: type[VirtualStore], how: dict[str, Any]
) -> None:
    # scenarios 259, 268
    async def main() -> None:
        async with engine_on(kind(), CHAIN, work) as engine:
            started = await failed(engine)
            mended()
            await started.retry(**how)
            assert await started.result() == {"b": "bad", "c": 6000}
            assert made == [LARGE, "bad", "bad", 6000]
            info = await started.describe()
            assert (info.status, info.failure) == ("completed", None)

    run(main())


@STORES
@pytest.mark.rule("G-92", "G-105")
@pytest.mark.parametrize("text", ["better", LARGE])
def test_a_retry_can_bring_another_input(kind: type[VirtualStore], text: str) -> None:
    async def main() -> None:
        async with engine_on(kind(), CHAIN, work) as engine:
            started = await failed(engine)
            await started.retry(failed=True, input={"text": text})
            assert await started.result() == {"b": text, "c": 6000}

    run(main())


@pytest.mark.rule("G-92", "G-101")
def test_a_retry_moves_the_run_to_the_version_that_is_served() -> None:
    # scenario 277
    newer = graph("chain", [echo("a", 1), echo("b", "good"), echo("d", "{{tasks.b.output}}")])

    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, CHAIN, work) as engine:
            await failed(engine)
        async with engine_on(store, newer, work) as engine:
            started = engine.get("chain", "1")
            await started.retry(from_node="b")
            assert await started.result() == {"d": "good"}
            assert (await started.describe()).version == newer.version
        assert made == [LARGE, "bad", "good", "good"]

    run(main())


@pytest.mark.rule("D-8")
def test_a_client_that_does_not_work_can_retry_and_a_worker_goes_on() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, CHAIN, work) as engine:
            await failed(engine)
            mended()
            async with client_on(store) as client:
                await client.get("chain", "1").retry(failed=True)
            assert await engine.get(CHAIN, "1").result() == {"b": "bad", "c": 6000}

    run(main())


@STORES
@pytest.mark.rule("D-8", "G-89", "G-90")
def test_a_refusal_is_raised_and_nothing_is_written(kind: type[VirtualStore]) -> None:
    async def main() -> None:
        store = kind()
        async with engine_on(store, CHAIN, work, other) as engine:
            started = await failed(engine)
            before = await store.describe("chain", "1")
            refusals: list[tuple[type[Exception], str, Callable[[], Any]]] = [
                (InvalidRequest, "nowhere", lambda: started.retry(from_node="nowhere")),
                (InvalidRequest, "either", started.retry),
                (InvalidRequest, "either", lambda: started.retry(from_node="b", failed=True)),
                (InvalidRequest, "NaN", lambda: started.retry(failed=True, input=float("nan"))),
                (NotFound, "chain", lambda: engine.get(CHAIN, "2").retry(failed=True)),
                (NotFound, "nothing", lambda: engine.get("nothing", "1").retry(failed=True)),
            ]
            for error, match, ask in refusals:
                with pytest.raises(error, match=match):
                    await ask()
            after = await store.describe("chain", "1")
            assert (after.status, after.owner, after.failure) == ("failed", None, before.failure)
            assert len(await store.journal("chain", "1")) == 3
            mended()
            await started.retry(failed=True)
            assert await started.result() == {"b": "bad", "c": 6000}
            with pytest.raises(InvalidRequest, match="failed"):
                await started.retry(failed=True)

    run(main())


@pytest.mark.rule("G-89")
def test_a_run_that_has_not_ended_is_not_retried() -> None:
    g = graph("g", [wait_for("ok", "go")])

    async def main() -> None:
        async with engine_on(VirtualStore(), g) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(RunActive, match="not ended"):
                await started.retry(from_node="ok")
            await started.signal("go")
            await started.result()

    run(main())


@pytest.mark.rule("D-39", "D-8")
def test_a_cancelled_run_goes_on_where_it_was_cancelled() -> None:
    g = graph("g", [echo("a", 1), wait_for("ok", "go"), echo("b", 2)])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, work) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(1)
            await started.cancel()
            with pytest.raises(Canceled):
                await started.result()
            await started.retry(failed=True)
            await started.signal("go")
            assert await started.result() == {"b": 2}
            assert made == [1, 2]

    run(main())


def test_a_retried_run_has_a_fresh_deadline() -> None:
    g = graph("g", [wait_for("ok", "go")], max_duration="1h")

    async def main() -> None:
        async with engine_on(VirtualStore(), g) as engine:
            started = await engine.start(g, id="1")
            with pytest.raises(TimedOut):
                await started.result()
            await started.retry(failed=True)
            await asyncio.sleep(3000)
            assert await started.status() == "running"
            with pytest.raises(TimedOut):
                await started.result()
            assert asyncio.get_running_loop().time() == pytest.approx(7200, abs=2)

    run(main())


def test_a_completed_run_can_be_done_again_from_a_node() -> None:
    async def main() -> None:
        mended()
        async with engine_on(VirtualStore(), CHAIN, work) as engine:
            assert await engine.run(CHAIN, {"text": "x"}, id="1") == {"b": "x", "c": 6000}
            started = engine.get(CHAIN, "1")
            await started.retry(from_node="b", input={"text": "y"})
            assert await started.result() == {"b": "y", "c": 6000}
            assert made == [LARGE, "x", 6000, "y", 6000]

    run(main())


@STORES
def test_a_retry_that_leads_straight_to_an_end_ends_the_run_anew(kind: type[VirtualStore]) -> None:
    g = graph("g", [echo("a", 1), node("f", "FORK")], output="{{input.text}}")

    async def main() -> None:
        async with engine_on(kind(), g, work) as engine:
            assert await engine.run(g, {"text": "x"}, id="1") == "x"
            started = engine.get(g, "1")
            await started.retry(from_node="f", input={"text": "y"})
            assert await started.result() == "y"
            assert made == [1]

    run(main())


@STORES
def test_a_retry_that_leads_straight_to_an_end_is_on_the_version_that_led_there(
    kind: type[VirtualStore],
) -> None:
    nodes = [echo("a", 1), node("f", "FORK")]
    old = graph("g", nodes, output="{{input.text}}")
    newer = graph("g", nodes, output="{{input.text + '!'}}")

    async def main() -> None:
        store = kind()
        async with engine_on(store, old, work) as engine:
            await engine.run(old, {"text": "x"}, id="1")
        async with engine_on(store, newer, work) as engine:
            started = engine.get("g", "1")
            await started.retry(from_node="f")
            assert await started.result() == "x!"
            assert (await started.describe()).version == newer.version
            assert (await store.describe("g", "1")).hash == newer.hash

    run(main())


def test_a_run_that_was_paused_is_so_after_its_retry() -> None:
    g = graph("g", [echo("a", "bad"), echo("b", 2)])

    async def main() -> None:
        async with engine_on(VirtualStore(), g, work) as engine:
            started = await engine.start(g, id="1")
            await asyncio.sleep(0.001)  # its first step is under way
            await started.pause()
            with pytest.raises(RunFailed):
                await started.result()
            mended()
            made.clear()
            await started.retry(failed=True)
            await asyncio.sleep(60)
            assert made == [], "as the description of retry says"
            await started.unpause()
            assert await started.result() == {"b": 2}

    run(main())


def test_mail_that_was_unread_at_the_end_does_not_end_the_retried_run() -> None:
    g = graph("g", [echo("a", "{{input.text}}"), wait_for("ok", "go")])

    async def main() -> None:
        store = LateStore()
        async with engine_on(store, g, work) as engine:
            started = await engine.start(g, {"text": "bad"}, id="1")
            store.holding = True
            await asyncio.sleep(1)  # it failed, and nobody can know yet
            await store.post([Message("g", "1", "m1", "cancel")])
            await store.post([Message("g", "1", "m2", "signal", "go", b'"kept"')])
            store.holding = False
            store.let_go()
            with pytest.raises(RunFailed):
                await started.result()
            mended()
            await started.retry(failed=True)
            assert await started.result() == {"ok": "kept"}
        assert "Ignored" in await store.actions("g", "1")

    run(main())


@STORES
def test_of_two_retries_at_once_one_is_made(kind: type[VirtualStore]) -> None:
    # scenario 102
    class Slow(kind):  # type: ignore[misc, valid-type]
        async def load(self, key: bytes) -> Any:
            await asyncio.sleep(0.01)
            return await super().load(key)

    async def main() -> None:
        store = Slow()
        async with engine_on(store, CHAIN, work) as engine:
            started = await failed(engine)
            mended()
            answers = await asyncio.gather(
                *(started.retry(failed=True) for _ in range(3)), return_exceptions=True
            )
            assert [type(a).__name__ for a in answers].count("NoneType") == 1
            assert await started.result() == {"b": "bad", "c": 6000}
        assert (await store.actions("chain", "1")).count("ReopenRun") == 1

    run(main())


@pytest.mark.parametrize("written", [False, True])
def test_a_retry_whose_outcome_is_unknown_is_sent_again_as_it_was(written: bool) -> None:
    async def main() -> None:
        store = LateStore()
        store.written_all_the_same = written
        async with engine_on(store, CHAIN, work) as engine:
            started = await failed(engine)
            mended()
            store.failures.extend([StoreError("no answer came")] * 2)
            await started.retry(failed=True)
            assert await started.result() == {"b": "bad", "c": 6000}
        assert (await store.actions("chain", "1")).count("ReopenRun") == 1

    run(main())


def test_a_retry_that_the_store_refuses_or_never_takes_is_told_and_can_be_made_again() -> None:
    class Away(LateStore):
        away = 0

        def commit(self, rows: Sequence[JournalRow], done: Any) -> None:
            self.away -= 1
            if self.away >= 0:
                done(StoreError("the disk is away"))
            else:
                super().commit(rows, done)

    async def main() -> None:
        store = Away()
        async with engine_on(store, CHAIN, work) as engine:
            started = await failed(engine)
            mended()
            store.away = 100
            with pytest.raises(StoreError, match="away"):
                await started.retry(failed=True)
            store.away = 0
            await started.retry(failed=True)
            assert await started.result() == {"b": "bad", "c": 6000}

    run(main())


def test_a_caller_that_goes_away_while_retrying_leaves_the_run_free() -> None:
    async def main() -> None:
        store = LateStore(latency=1)
        async with engine_on(store, CHAIN, work) as engine:
            started = await failed(engine)
            mended()
            retrying = asyncio.ensure_future(started.retry(failed=True))
            await settle()
            retrying.cancel()
            await asyncio.sleep(10)
            row = await store.describe("chain", "1")
            assert row.status == "completed" or row.owner is None

    run(main())


def test_an_engine_that_lacks_a_step_of_the_version_refuses_the_retry() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, CHAIN, work) as engine:
            await failed(engine)
        async with engine_on(store, other) as engine:
            with pytest.raises(DefinitionError, match="work"):
                await engine.get("chain", "1").retry(failed=True)

    run(main())
