"""Nothing grows with the number of runs that are over and past their retention: no table, no
container of the engine, no object, no byte.

In memory over 100,000 runs, on SQLite over fewer, of all doors: graphs, workflows with children,
sagas that are undone, runs that wait, are signaled, canceled, retried; heard of by all listeners.
"""

from __future__ import annotations

import asyncio
import gc
import linecache
import sqlite3
import sys
import tracemalloc
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest

from perdure import Context, Engine, Failure, Graph, Saga, SagaContext, Signal, step, workflow
from perdure.feed import ClientEvent, LiveView, RunEvent, WorkflowRecord
from perdure.stores.memory import MemoryStore

#: Runs that end before the first look, and between two looks, in memory.
BEFORE, RUNS = 20_000, 100_000
#: How many of them every byte is counted of, which takes its time.
TRACED = 20_000
#: Runs that a live view keeps.
LIMIT = 10
#: How many of all are of each of the doors that do more than begin and end.
EVERY = 200
#: Runs at a time.
BATCH = 1000

OPEN = {"bank": True}
told = Signal("told", int)


class Placed(msgspec.Struct):
    """An event of the program's own."""

    n: int


@step
async def twice(n: int) -> int:
    return 2 * n


@workflow(max_duration="1h", retention="1ms")
async def child(ctx: Context, n: int) -> int:
    return await twice(n)


@workflow(max_duration="1h", retention="1ms")
async def parent(ctx: Context, n: int) -> int:
    return await ctx.child(child, n) + await ctx.wait(told)


async def charge(ctx: SagaContext[Placed]) -> str:
    ctx.set("n", ctx.payload.n)
    return "." * 5000  # stands apart from its row


async def ship(ctx: SagaContext[Placed]) -> None:
    if not OPEN["bank"]:
        raise Failure("odd", kind="odd-number-of-growth")


async def undo(ctx: SagaContext[Placed]) -> None: ...


buy = (
    Saga("buy", Placed, max_duration="1h", retention="1ms")
    .step("charge", charge, undo=undo)
    .step("ship", ship)
    .started_by(Placed)
)
quick = Graph.load(
    {
        "name": "quick",
        "retention": "1ms",
        "nodes": [{"id": "all", "type": "FORK"}, {"id": "end", "type": "JOIN"}],
        "edges": [{"from": "all", "to": "end"}],
    }
)
wait = Graph.load(
    {
        "name": "wait",
        "retention": "1ms",
        "nodes": [{"id": "w", "type": "WAIT", "spec": {"duration": "1h"}}],
        "edges": [],
    }
)


@pytest.fixture(autouse=True)
def purged_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores keep what ended for a while whatever its retention is; not here."""
    for module in ("memory.overdue", "sqlite.purge"):
        monkeypatch.setattr(f"perdure.stores.{module}.PURGE_AFTER", 0)


async def through_all_doors(engine: Engine, n: int) -> None:
    """Seven runs that do what runs do, to their ends."""
    asking = await engine.start(parent, n, id=f"{n}")
    await asking.signal(told, n)
    assert await asking.result() == 3 * n
    await engine.emit(Placed(n), idempotency_key=f"{n}")
    await engine.get(buy, f"{n}").result()
    OPEN["bank"] = False
    failing = await engine.start(buy, Placed(n), id=f"{n}f")
    with pytest.raises(Failure):
        await failing.result()
    OPEN["bank"] = True
    await failing.retry(failed=True)
    await failing.result()
    given_up = await engine.start(wait, id=f"{n}")
    await given_up.cancel("enough")
    with pytest.raises(Failure):
        await given_up.result()


async def rounds(engine: Engine, first: int, count: int) -> None:
    """So many runs that end, and are purged."""
    for begin in range(first, first + count, BATCH):
        numbers = range(begin, min(begin + BATCH, first + count))
        for n in numbers:
            if n % EVERY:
                await engine.start(quick, id=f"{n}")
            else:
                await through_all_doors(engine, n)
        await forgotten(engine)


async def forgotten(engine: Engine) -> None:
    """All that ended is purged, and all that is to be told is told."""
    while [one async for one in engine.runs()]:
        await asyncio.sleep(0.002)
        await engine._store.purge(10 * BATCH)


def all_listeners(engine: Engine) -> LiveView:
    for kind in (RunEvent, ClientEvent, WorkflowRecord, Placed):
        engine.listen(kind)(lambda event: None)  # type: ignore[type-var]
    return LiveView(engine, limit=LIMIT, keep="1h")


def containers(root: Any) -> dict[str, int]:
    """How much is in each container that can be reached from here, by the way to it."""
    found: dict[str, int] = {}
    seen: set[int] = set()
    left: deque[tuple[str, Any]] = deque([("", root)])
    while left:
        path, thing = left.popleft()
        if id(thing) in seen or isinstance(thing, (type, ModuleType, FunctionType, str, bytes)):
            continue
        seen.add(id(thing))
        if isinstance(thing, (Mapping, AbstractSet, list, tuple, deque)):
            found[path] = len(thing)
        left.extend((f"{path}{name}", inside) for name, inside in _inside(thing))
    return found


def _inside(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Mapping):
        yield from ((f"[{key!r:.20}]", value) for key, value in list(thing.items()))
    elif isinstance(thing, (AbstractSet, list, tuple, deque)):
        yield from ((f"[{n}]", value) for n, value in enumerate(list(thing)))
    elif type(thing).__module__.startswith("perdure"):
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        for name in (*getattr(thing, "__dict__", ()), *slots):
            with suppress(AttributeError):
                yield f".{name}", getattr(thing, name)


def grown(before: dict[str, int], after: dict[str, int], slack: int) -> dict[str, tuple[int, int]]:
    """What holds more than before, and by more than a few."""
    return {
        path: (before.get(path, 0), count)
        for path, count in after.items()
        if count > before.get(path, 0) + slack
    }


def tidied() -> None:
    """Nothing is left that is nobody's. On a busy machine the watchdog tells of a loop that did not
    turn, with lines of source, and Python keeps each file that it has read for such lines."""
    linecache.clearcache()
    gc.collect()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_nothing_grows_in_memory_over_a_hundred_thousand_runs_that_are_past_their_retention() -> (
    None
):
    async def main() -> None:
        store = MemoryStore()
        async with Engine(store, [parent, child, buy, quick, wait, twice]) as engine:
            live = all_listeners(engine)
            await rounds(engine, 0, BEFORE)
            tidied()
            before, blocks = containers(engine), sys.getallocatedblocks()
            await rounds(engine, BEFORE, RUNS - BEFORE - TRACED)
            gc.collect()
            tracemalloc.start()
            await rounds(engine, RUNS - TRACED, TRACED)
            tidied()
            kept, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            # Before it is looked into: that makes objects.
            blocks = sys.getallocatedblocks() - blocks
            after = containers(engine)
            assert any(path.endswith("store._runs") for path in after), "the store was looked into"
            assert len(live.runs()) == LIMIT
        assert grown(before, after, 50) == {}
        assert blocks < (RUNS - BEFORE) // 20, f"{blocks} objects are left of what ended"
        assert kept < 20 * TRACED, f"{kept} bytes are left of what ended"

    asyncio.run(main())


def rows(path: Path) -> dict[str, int]:
    """How many rows each table of a database has, and how many pages the file."""
    db = sqlite3.connect(path)
    try:
        names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        found = {"pages": db.execute("PRAGMA page_count").fetchone()[0]}
        for (name,) in db.execute(names).fetchall():
            found[name] = db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
        return found
    finally:
        db.close()


@pytest.mark.slow
@pytest.mark.timeout(100)
def test_no_table_of_a_database_grows_with_runs_that_are_past_their_retention(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.BATCH", 100)
    monkeypatch.setattr(f"{__name__}.EVERY", 20)
    path = tmp_path / "runs.db"

    async def worked(first: int, count: int) -> dict[str, int]:
        url = f"sqlite:///{path}?sync=normal"
        async with Engine(url, [parent, child, buy, quick, wait, twice]) as engine:
            all_listeners(engine)
            await rounds(engine, first, 200)
            inside = containers(engine)
            await rounds(engine, first + 200, count - 200)
            assert grown(inside, containers(engine), 50) == {}
        return rows(path)  # nobody else may look into the file while it is open here

    before = asyncio.run(worked(0, 500))
    after = asyncio.run(worked(500, 2000))
    pages = before.pop("pages"), after.pop("pages")
    assert after == before
    assert (after["run"], after["journal"], after["definition"]) == (0, 0, 5)
    assert pages[1] <= pages[0] * 1.5
