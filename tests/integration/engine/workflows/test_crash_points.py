"""Every write of a workflow's run is once the last one of its process, undone or unanswered.

Whoever told the run something says it again to the next engine; the run ends as if there had been
no crash, and only what was under way at the crash is done again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from perdure import After, Channel, Context, Retry, Signal, current_step, step, workflow
from perdure.client.engine import Engine
from perdure.client.run import Run
from perdure.codec.journal import decode_row
from perdure.engine.runs.coding import this_life
from perdure.kernel.fold import fold
from perdure.model.errors import NotFound, PerdureError, StepFailed, StoreError
from tests.virtual.crashing import (
    CrashingStore,
    Opener,
    When,
    crash_points,
    dying,
    rows_of,
    task_outcomes,
    until_crash,
)
from tests.virtual.engines import engine_on
from tests.virtual.stores import VirtualFile, VirtualStore
from tests.virtual.threads import run

LARGE = "x" * 6000

go = Signal("go", str)
news = Channel("news", int)
made: Counter[tuple[str, int]] = Counter()
fails: list[str] = []


@step
async def work(value: Any, seconds: float = 0.01) -> Any:
    made[current_step().idempotency_key, current_step().attempt - 1] += 1
    await asyncio.sleep(seconds)
    return value


@step(retry=Retry(3, initial=1.5, jitter=0))
async def flaky(value: int) -> int:
    made[current_step().idempotency_key, current_step().attempt - 1] += 1
    if current_step().attempt < 3:
        raise ValueError("not yet")
    return value


@step
async def gate(name: str) -> str:
    made[current_step().idempotency_key, current_step().attempt - 1] += 1
    if name in fails:
        raise ValueError(f"{name} is shut")
    return name


@workflow(max_duration="30d")
async def approval(ctx: Context) -> list[Any]:
    first = await work(1)
    said = await ctx.wait(go, timeout="72h")
    return [first, len(said), await work(2)]


@workflow(max_duration="30d")
async def wide(ctx: Context) -> list[Any]:
    got = await asyncio.gather(*(work(n, 0.01 * n) for n in range(4)), flaky(9))
    await ctx.sleep("3s")
    async with asyncio.timeout(5):
        return [*got, await work("end")]


@workflow(max_duration="30d")
async def inbox(ctx: Context) -> list[Any]:
    got: list[Any] = []
    while len(got) < 3:
        match await ctx.select(news, After("3s", lambda: "late")):
            case int(number):
                got.append(await work(number))
            case late:
                got.append(late)
    return got


@workflow(max_duration="30d")
async def trip(ctx: Context) -> None:
    async with ctx.saga() as saga:
        await saga.run(work, "car", undo=work)
        await saga.run(work, "hotel", undo=work)
        await ctx.wait(go)


@workflow(max_duration="30d")
async def gated(ctx: Context, round: int | None) -> list[Any]:
    if not round:
        await work("first round")
        ctx.continue_as_new(1)
    return [await work(1), await gate("door"), await ctx.wait(go)]


ALL = (approval, wide, inbox, trip, gated)


async def send(told: Run[Any], what: Any, value: Any, key: str) -> None:
    with suppress(NotFound):  # the run has ended
        await told.signal(what, value, dedupe_key=key)


async def approve(told: Run[Any]) -> None:
    await asyncio.sleep(3)
    await send(told, go, LARGE, "go")


async def nothing(told: Run[Any]) -> None:
    """It goes on by itself."""


async def write(told: Run[Any]) -> None:
    await send(told, news, 1, "one")
    await send(told, news, 2, "two")
    await send(told, news, 2, "two")


async def cancel(told: Run[Any]) -> None:
    await asyncio.sleep(3)
    await told.cancel("rain")


async def retry(told: Run[Any]) -> None:
    """The door is shut until the run has failed once."""
    await send(told, go, "early", "go")
    if not [r async for r in told.history() if r["do"] == "ReopenRun"]:
        fails[:] = ["door"]
        with suppress(PerdureError, StepFailed):
            await told.result()
    fails.clear()
    while await told.status() == "failed":
        try:
            await told.retry(failed=True)
        except StoreError:
            await asyncio.sleep(1)  # the claim of the one who crashed is not free yet


Tell = Callable[[Run[Any]], Awaitable[None]]
SCENES: dict[str, tuple[Any, Tell, Any]] = {
    "approval": (approval, approve, [1, 6000, 2]),
    "wide": (wide, nothing, [0, 1, 2, 3, 9, "end"]),
    "inbox": (inbox, write, [1, 2, "late"]),
    "trip": (trip, cancel, "canceled"),
    "gated": (gated, retry, [1, "door", "early"]),
}


@pytest.fixture(params=["memory", "sqlite"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store as another process would."""
    if request.param == "sqlite":
        return lambda: VirtualFile(tmp_path / "runs.db", synchronous="normal")
    memory = VirtualStore()
    return lambda: memory


def process(store: Any) -> AbstractAsyncContextManager[Engine]:
    """An engine that parks as soon as it can."""
    return dying(engine_on(store, *ALL, park_after=0), store)


async def live(engine: Engine, name: str, id: str) -> Any:
    """Start or join the run, tell it all it is to be told, and see how it ends."""
    definition, tell, _ = SCENES[name]
    started: Run[Any] = await engine.start(definition, id=id, if_exists="join")
    await tell(started)
    try:
        return await started.result(timeout="1h")
    except PerdureError:
        return await started.status()


async def crash_once(opener: Opener, name: str, at: int, when: When) -> bool:
    """Crash at this write, then go on; False when the run has no such write."""
    made.clear()
    fails.clear()
    id = f"{at}-{when}"
    store = CrashingStore(opener(), at, when)
    ended = await until_crash(store, process(store), lambda engine: live(engine, name, id))
    if not store.crashed.is_set():
        assert ended == SCENES[name][2]
        return False
    before = set(made)
    inner = opener()
    await inner.open()
    recorded = await rows_of(inner, name, id)
    async with process(inner) as engine:
        ended = await live(engine, name, id)
        rows = await rows_of(inner, name, id)
        row = await inner.describe(name, id)
    assert ended == SCENES[name][2]
    if recorded and rows[0].seq == recorded[0].seq:  # going on as new leaves the old life behind
        assert rows[: len(recorded)] == recorded
    assert [r.seq for r in rows] == list(range(rows[0].seq, rows[0].seq + len(rows)))
    status = fold(this_life([t for r in rows for t in decode_row(r.body)])).status
    assert (status, row.owner) == (row.status, None)
    decided = task_outcomes(rows)
    assert len(decided) == len(set(decided)), "an outcome was decided twice"
    again = {outcome for outcome, times in made.items() if times > 1}
    assert again <= before - set(task_outcomes(recorded)), "made again though not in flight"
    assert max(made.values()) <= 2
    return True


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", SCENES)
def test_a_crash_at_any_write_changes_nothing_of_how_a_workflow_ends(
    opener: Opener, name: str, when: When
) -> None:
    points = run(crash_points(lambda at: crash_once(opener, name, at, when)))
    assert points >= 4, f"only {points} crash points"
