"""Undoing that is interrupted at any moment of it: by a move to another store through a file, by
two deaths of whoever works on it, by two workers that are only taken for dead.

Whatever comes when: what was done is undone once as far as is recorded, the last completed first,
an undo whose end is recorded is not made again, and the run ends as it would have.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from perdure import Failure, Retry, Saga, SagaContext
from perdure.client.export_reader import ExportReader
from perdure.client.export_writer import ExportWriter
from perdure.client.moving import check, import_run, saved_runs
from perdure.codec.journal import decode_row
from perdure.kernel.actions import BeginCompensation, Claimed, CompensateTask, FailTask, FinishRun
from perdure.model.errors import RunFailed
from perdure.stores.moving import SavedRun
from tests.virtual.crashing import rows_of
from tests.virtual.engines import client_on, engine_on, killed
from tests.virtual.stores import VirtualFile, VirtualStore
from tests.virtual.threads import run

LARGE = "." * 6000

#: The undos that were made to their ends, or failed, with the attempt.
MADE: list[str] = []


@pytest.fixture(autouse=True)
def as_before() -> None:
    MADE.clear()


async def work(ctx: SagaContext[str]) -> str:
    ctx.set("last", ctx.node)
    await asyncio.sleep({"a": 1, "b": 1, "c": 1.1, "d": 1.2}[ctx.node])
    return f"{ctx.node} of {ctx.payload}{LARGE}"


async def declined(ctx: SagaContext[str]) -> None:
    await asyncio.sleep(0.8)
    raise Failure("no money", kind="no-money-of-an-undo")


def looks_around(ctx: SagaContext[str]) -> None:
    step = ctx.node.removesuffix("~undo")
    assert ctx.output(step) == f"{step} of {ctx.payload}{LARGE}"
    assert ctx.get("last") in ("b", "c", "d")


async def undo(ctx: SagaContext[str]) -> None:
    looks_around(ctx)
    await asyncio.sleep(2)
    MADE.append(f"{ctx.node} {ctx.attempt}")


async def undo_at_last(ctx: SagaContext[str]) -> None:
    await undo(ctx)
    if ctx.attempt < 2:
        raise Failure("the bank is busy")


async def closed(ctx: SagaContext[str]) -> None:
    await undo(ctx)
    raise Failure("the bank is closed")


#: a; then b, c and d side by side; pay fails. The undo of b needs two attempts, that of c fails.
SAGA = (
    Saga("shop", str, max_duration="1h")
    .step("a", work, undo=undo)
    .step("b", work, undo=undo_at_last, undo_retry=Retry(3, initial=4), depends_on=["a"])
    .step("c", work, undo=closed, depends_on=["a"])
    .step("d", work, undo=undo, depends_on=["a"])
    .step("pay", declined, depends_on=["b", "c", "d"])
)
#: Seconds at which it begins to undo, and ends.
UNDOING, END = 3, 3 + 2 + 2 + (2 + 4 + 2) + 2
TOLD = {"undone": ["d", "b", "a"], "undo_failed": ["c"], "unknown": []}
EVERY_MOMENT = [UNDOING + 0.5 + n for n in range(END - UNDOING)]


@pytest.fixture(params=["memory", "sqlite"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Callable[[], Any]]:
    """Opens the store of a name, again and again as other processes would."""

    def of(name: str) -> Callable[[], Any]:
        if request.param == "sqlite":
            return lambda: VirtualFile(tmp_path / f"{name}.db", synchronous="normal")
        store = VirtualStore()
        return lambda: store

    return of


async def ends_as_it_should(handle: Any, store: Any) -> None:
    """By what is raised, and by the journal."""
    with pytest.raises(RunFailed, match="node pay failed: no money") as failed:
        await handle.result()
    details: Any = failed.value.details
    assert {name: details[name] for name in TOLD} == TOLD
    rows = await rows_of(store, "shop", "1")
    actions = [action for row in rows for t in decode_row(row.body) for action in t.actions]
    assert [a.node for a in actions if isinstance(a, CompensateTask)] == TOLD["undone"]
    failures = [a.node for a in actions if isinstance(a, FailTask)]
    assert failures == ["pay", "c~undo"]
    assert [type(a) for a in actions].count(BeginCompensation) == 1
    assert [type(a) for a in actions].count(FinishRun) == 1


IN_ORDER = ["d~undo 1", "c~undo 1", "b~undo 1", "b~undo 2", "a~undo 1"]


def made_in_order(repeats: int) -> None:
    """Each once, in order, but for so many that were made again in the place where they stood."""
    once = [one for n, one in enumerate(MADE) if one not in MADE[:n]]
    assert once == IN_ORDER
    assert len(MADE) - len(once) <= repeats
    assert sorted(MADE, key=IN_ORDER.index) == MADE


def through_a_file(saved: Sequence[SavedRun]) -> list[SavedRun]:
    writer = ExportWriter()
    lines = [writer.head("a test", "2026-01-01T00:00:00Z")]
    for one in saved:
        lines += writer.run(one)
    lines.append(writer.done())
    read = list(ExportReader(io.BytesIO(b"".join(lines)), "runs.jsonl"))
    assert [one.journal for one in read] == [one.journal for one in saved]
    return read


@pytest.mark.rule("S-15", "S-16", "S-17")
@pytest.mark.parametrize("at", EVERY_MOMENT)
def test_a_run_moves_through_a_file_to_another_store_in_the_middle_of_undoing(
    stores: Callable[[str], Callable[[], Any]], at: float
) -> None:
    async def main() -> None:
        there, here = stores("there"), stores("here")
        async with engine_on(there(), SAGA, grace=0) as engine:
            await engine.start(SAGA, "ann", id="1")
            await asyncio.sleep(at)
        before = [*MADE]
        async with client_on(there()) as client:
            saved = [one async for one in saved_runs(client, [("shop", "1")], running=True)]
        [moved] = through_a_file(saved)
        check(moved)
        async with client_on(here()) as client:
            assert (await import_run(client, moved)).outcome == "paused"
        async with engine_on(here(), SAGA) as engine:
            handle = engine.get(SAGA, "1")
            await asyncio.sleep(10)
            assert before == MADE, "it stands still until somebody lets it go on"
            assert (await handle.view()).undoing
            await handle.unpause()
            await ends_as_it_should(handle, engine._store)
        made_in_order(0)

    run(main())


@pytest.mark.rule("S-15", "S-21", "D-20")
@pytest.mark.parametrize("second", EVERY_MOMENT)
@pytest.mark.parametrize("first", EVERY_MOMENT)
def test_two_deaths_while_it_undoes_change_nothing_of_what_is_undone(
    first: float, second: float
) -> None:
    """`second`: how long the second worker lives."""

    async def main() -> None:
        store = VirtualStore()
        async with killed(store, SAGA) as engine:
            await engine.start(SAGA, "ann", id="1")
            await asyncio.sleep(first)
        async with killed(store, SAGA):
            await asyncio.sleep(second)
        async with engine_on(store, SAGA) as engine:
            await ends_as_it_should(engine.get(SAGA, "1"), store)
        made_in_order(0)

    run(main())


@pytest.mark.rule("S-15", "S-21", "D-20")
@pytest.mark.parametrize("second", EVERY_MOMENT[::2])
@pytest.mark.parametrize("first", EVERY_MOMENT)
def test_two_workers_that_are_only_taken_for_dead_undo_nothing_that_is_recorded_as_undone(
    first: float, second: float
) -> None:
    """They go on with what they had begun, and nothing of it counts."""

    async def main() -> None:
        store, deaths = VirtualStore(), 0
        engines = [engine_on(store, SAGA, poll=0.1) for _ in range(3)]
        async with engines[0] as one, engines[1], engines[2]:
            handle = await one.start(SAGA, "ann", id="1")
            for seconds in (first, second):
                await asyncio.sleep(seconds)
                if (owner := (await handle._row()).owner) is not None:
                    store.crash(owner)
                    deaths += 1
            await ends_as_it_should(handle, store)
        assert deaths
        claimed = (await store.actions("shop", "1")).count(Claimed.__name__)
        assert claimed == deaths
        made_in_order(2 * deaths)

    run(main())
