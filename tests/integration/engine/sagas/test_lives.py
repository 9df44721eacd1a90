"""What happens to sagas beside crashes: pauses, shutdowns, undos that fail, moves, retries, purges.

Each on a store in memory and on SQLite.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from perdure import Engine, Failure, Retry, Saga, SagaContext
from perdure.client.moving import check, import_run, saved_runs
from perdure.client.run import Run
from perdure.engine.worker.retention import purge
from perdure.model.errors import Canceled, NotFound, RunFailed, TimedOut
from perdure.stores.memory import MemoryStore
from tests.virtual.engines import client_on, engine_on
from tests.virtual.stores import VirtualFile, VirtualStore
from tests.virtual.threads import run

SEEN: list[str] = []
#: Whether the last step fails.
DOWN = {"bank": True}

Fresh = Callable[[], Any]


@pytest.fixture(autouse=True)
def as_before() -> None:
    SEEN.clear()
    DOWN["bank"] = True


@pytest.fixture
def purged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores keep what ended for a while whatever its retention is; not here."""
    for module in ("memory.overdue", "sqlite.purge"):
        monkeypatch.setattr(f"perdure.stores.{module}.PURGE_AFTER", 0)


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Fresh]:
    """Opens the store of a name, again and again as other processes would."""

    def of(name: str) -> Fresh:
        if request.param == "sqlite":
            return lambda: VirtualFile(tmp_path / f"{name}.db", synchronous="normal")
        store = VirtualStore()
        return lambda: store

    return of


async def work(ctx: SagaContext[str]) -> str:
    SEEN.append(f"{ctx.node} {ctx.attempt}")
    ctx.set("last", ctx.node)
    return f"{ctx.node} of {ctx.payload}" + "." * 6000


async def declined(ctx: SagaContext[str]) -> str:
    SEEN.append(f"{ctx.node} {ctx.attempt}")
    if DOWN["bank"]:
        raise Failure("no money", kind="no_money")
    return "paid"


async def undo(ctx: SagaContext[str]) -> None:
    """Takes a while, and knows what it undoes."""
    node = ctx.node.removesuffix("~undo")
    assert ctx.output(node).startswith(f"{node} of {ctx.payload}")
    assert (ctx.get("last"), ctx.get("by")) == ("b", "web")
    SEEN.append(f"{ctx.node} {ctx.attempt}")
    await asyncio.sleep(0.2)
    SEEN.append(f"{ctx.node} done")


def shop(**of_b: Any) -> Saga[str]:
    made = Saga("shop", str, max_duration="1d", retention="1s").step("a", work, undo=undo)
    return made.step("b", work, **({"undo": undo} | of_b)).step("pay", declined)


async def started(engine: Engine, saga: Saga[str]) -> Run[Any]:
    return await engine.start(saga, "ann", id="1", metadata={"by": "web"})


async def told(run: Run[Any]) -> dict[str, Any]:
    """What is told of the undoing where the run failed for its own reason."""
    with pytest.raises(RunFailed, match="no money") as failed:
        await run.result()
    assert failed.value.compensated is not bool(failed.value.details["undo_failed"])
    details: dict[str, Any] = failed.value.details
    return {key: details[key] for key in ("undone", "undo_failed", "unknown")}


BOTH = {"undone": ["b", "a"], "undo_failed": [], "unknown": []}
FORWARD = ["a 1", "b 1", "pay 1"]


@pytest.mark.rule("SX-11")
@pytest.mark.parametrize(
    ("grace", "made_again"), [(0.05, ["b~undo 1", "b~undo done"]), (2, [])], ids=["late", "in time"]
)
def test_a_shutdown_lets_an_undo_end_for_so_long_and_leaves_the_rest_to_the_next_process(
    stores: Callable[[str], Fresh], grace: float, made_again: list[str]
) -> None:
    async def main() -> None:
        opened, saga = stores("shop"), shop()
        async with engine_on(opened(), saga, grace=grace) as engine:
            await started(engine, saga)
            await asyncio.sleep(0.1)
            assert [*FORWARD, "b~undo 1"] == SEEN
        before = [*SEEN]
        assert before == [*FORWARD, "b~undo 1", *([] if made_again else ["b~undo done"])]
        async with engine_on(opened(), saga) as engine:
            assert await told(engine.get(saga, "1")) == BOTH
        assert SEEN[len(before) :] == [*made_again, "a~undo 1", "a~undo done"]

    run(main())


@pytest.mark.rule("SX-3", "D-18")
def test_nothing_cancels_an_undo(stores: Callable[[str], Fresh]) -> None:
    async def main() -> None:
        saga = shop()
        async with engine_on(stores("shop")(), saga) as engine:
            running = await started(engine, saga)
            await asyncio.sleep(0.1)
            await running.cancel("enough")
            await asyncio.sleep(0.1)
            assert await told(running) == BOTH
        assert [*FORWARD, "b~undo 1", "b~undo done", "a~undo 1", "a~undo done"] == SEEN

    run(main())


@pytest.mark.rule("D-18")
def test_a_deadline_ends_no_undo_either(stores: Callable[[str], Fresh]) -> None:
    async def main() -> None:
        base = Saga("shop", str, max_duration="150ms").step("a", work, undo=undo)
        saga = base.step("b", work, undo=undo).step("pay", declined)
        async with engine_on(stores("shop")(), saga) as engine:
            assert await told(await started(engine, saga)) == BOTH

    run(main())


def test_a_pause_holds_the_next_undo_back(stores: Callable[[str], Fresh]) -> None:
    async def main() -> None:
        opened, saga = stores("shop"), shop()
        async with engine_on(opened(), saga) as engine:
            running = await started(engine, saga)
            await asyncio.sleep(0.1)
            await running.pause()
            await asyncio.sleep(3)
            assert SEEN[3:] == ["b~undo 1", "b~undo done"]
        async with engine_on(opened(), saga) as engine:
            running = engine.get(saga, "1")
            await asyncio.sleep(3)
            assert SEEN[3:] == ["b~undo 1", "b~undo done"]
            await running.unpause()
            assert await told(running) == BOTH

    run(main())


@pytest.mark.rule("SX-2")
def test_an_undo_has_its_own_retries_and_timeout_and_one_that_fails_stops_no_other(
    stores: Callable[[str], Fresh],
) -> None:
    async def hangs(ctx: SagaContext[str]) -> None:
        SEEN.append(f"{ctx.node} {ctx.attempt}")
        await asyncio.sleep(1000)

    async def main() -> None:
        saga = shop(undo=hangs, undo_retry=Retry(3, initial="300ms"), undo_timeout="100ms")
        async with engine_on(stores("shop")(), saga) as engine:
            running = await started(engine, saga)
            assert await told(running) == {"undone": ["a"], "undo_failed": ["b"], "unknown": []}
        tries = ["b~undo 1", "b~undo 2", "b~undo 3"]
        assert [*FORWARD, *tries, "a~undo 1", "a~undo done"] == SEEN

    run(main())


@pytest.mark.rule("D-18")
@pytest.mark.parametrize(
    ("answers", "undone", "unknown"),
    [(True, ["slow", "quick", "a"], []), (False, ["slow", "quick", "a"], ["slow"])],
)
def test_a_branch_in_flight_when_another_fails_is_waited_for_and_undone(
    stores: Callable[[str], Fresh], answers: bool, undone: list[str], unknown: list[str]
) -> None:
    async def slow(ctx: SagaContext[str]) -> None:
        try:
            await asyncio.sleep(0.1)
        except asyncio.CancelledError:
            if not answers:
                raise
        SEEN.append("slow ends")

    async def quick_undo(ctx: SagaContext[str]) -> None:
        SEEN.append(ctx.node)

    async def main() -> None:
        saga = (
            Saga("shop", str, on_failure="drain" if answers else "cancel")
            .step("a", work, undo=quick_undo)
            .step("slow", slow, undo=quick_undo, depends_on=["a"])
            .step("quick", work, undo=quick_undo, depends_on=["a"])
            .step("pay", declined, depends_on=["quick"])
        )
        async with engine_on(stores("shop")(), saga) as engine:
            found = await told(await started(engine, saga))
        assert found == {"undone": undone, "undo_failed": [], "unknown": unknown}
        undos = ["slow~undo", "quick~undo", "a~undo"]
        assert SEEN[-len(undos) :] == undos
        assert ("slow ends" in SEEN) is answers

    run(main())


@pytest.mark.rule("D-18")
@pytest.mark.parametrize("also", [True, False])
@pytest.mark.parametrize("how", ["cancel", "deadline"])
def test_what_nobody_knows_the_end_of_is_undone_unless_it_says_otherwise(
    stores: Callable[[str], Fresh], also: bool, how: str
) -> None:
    async def hangs(ctx: SagaContext[str]) -> None:
        await asyncio.sleep(1000)

    async def quick_undo(ctx: SagaContext[str]) -> None:
        SEEN.append(ctx.node)

    async def main() -> None:
        saga = (
            Saga("shop", str, max_duration="1s" if how == "deadline" else "1h")
            .step("a", work, undo=quick_undo)
            .step("b", hangs, undo=quick_undo, undo_unknown=also)
        )
        async with engine_on(stores("shop")(), saga) as engine:
            running = await started(engine, saga)
            await asyncio.sleep(0.1)
            if how == "cancel":
                await running.cancel("enough")
            with pytest.raises((Canceled, TimedOut), match=r"enough|max_duration") as ended:
                await running.result()
        details: Any = ended.value.details
        assert details["undone"] == (["b", "a"] if also else ["a"])
        assert details["unknown"] == ["b"]
        assert ["a 1", *(["b~undo"] if also else []), "a~undo"] == SEEN

    run(main())


def test_a_run_that_was_undone_can_be_retried_and_does_all_that_was_undone_again(
    stores: Callable[[str], Fresh],
) -> None:
    async def main() -> None:
        opened, saga = stores("shop"), shop()
        async with engine_on(opened(), saga) as engine:
            await told(await started(engine, saga))
            DOWN["bank"] = False
            SEEN.clear()
            await engine.get(saga, "1").retry(failed=True)
            assert (await engine.get(saga, "1").result())["pay"] == "paid"
        assert SEEN == FORWARD

    run(main())


def test_a_retried_run_that_fails_again_is_undone_again(stores: Callable[[str], Fresh]) -> None:
    async def main() -> None:
        opened, saga = stores("shop"), shop()
        async with engine_on(opened(), saga) as engine:
            await told(await started(engine, saga))
            SEEN.clear()
            await engine.get(saga, "1").retry(failed=True)
        async with engine_on(opened(), saga) as engine:
            assert await told(engine.get(saga, "1")) == BOTH
        assert [one for one in SEEN if one.endswith("done")] == ["b~undo done", "a~undo done"]

    run(main())


@pytest.mark.parametrize("after", [0.1, 1])
def test_a_run_moves_to_another_store_in_the_middle_of_undoing_and_after(
    stores: Callable[[str], Fresh], after: float
) -> None:
    async def main() -> None:
        there, here, saga = stores("there"), stores("here"), shop()
        async with engine_on(there(), saga, grace=0) as engine:
            await started(engine, saga)
            await asyncio.sleep(after)
        async with client_on(there()) as client:
            (saved,) = [one async for one in saved_runs(client, [("shop", "1")], running=True)]
        check(saved)
        async with client_on(here()) as client:
            moved = await import_run(client, saved)
        assert moved.outcome == ("paused" if after == 0.1 else "imported")
        async with engine_on(here(), saga) as engine:
            running = engine.get(saga, "1")
            if after == 0.1:
                await running.unpause()
            assert await told(running) == BOTH

    run(main())


@pytest.mark.usefixtures("purged_at_once")
def test_runs_that_were_undone_are_forgotten_after_their_retention_with_all_they_left(
    stores: Callable[[str], Fresh],
) -> None:
    async def main() -> None:
        store, saga = stores("shop")(), shop()
        async with engine_on(store, saga) as engine:
            running = await started(engine, saga)
            await told(running)
            await asyncio.sleep(2)
            assert await purge(store) == 1
            with pytest.raises(NotFound):
                await running.status()
            assert await told(await started(engine, saga)) == BOTH, "its id is free again"

    run(main())


@pytest.mark.usefixtures("purged_at_once")
def test_nothing_grows_with_the_number_of_runs_that_are_over() -> None:
    """By what is alive: whatever a run left behind would be there once for each of them."""

    async def quick(ctx: SagaContext[int]) -> int:
        ctx.set("n", ctx.payload)
        return ctx.payload

    async def bad(ctx: SagaContext[int]) -> None:
        if ctx.payload % 2:
            raise Failure("odd", kind="odd_number")

    async def quick_undo(ctx: SagaContext[int]) -> None: ...

    saga = Saga("many", int, retention="1ms").step("a", quick, undo=quick_undo).step("b", bad)

    async def rounds(engine: Engine, first: int, count: int) -> None:
        for n in range(first, first + count):
            with suppress(RunFailed):
                await engine.run(saga, n, id=str(n))

    async def main() -> None:
        store = MemoryStore()
        async with Engine(store, [saga]) as engine:
            await rounds(engine, 0, 300)
            await asyncio.sleep(0.01)
            await purge(store)
            gc.collect()
            before = len(gc.get_objects())
            await rounds(engine, 300, 1200)
            await asyncio.sleep(0.01)
            await purge(store)
            gc.collect()
            assert len(gc.get_objects()) - before < 300
            assert [info async for info in engine.runs()] == []

    asyncio.run(main())
