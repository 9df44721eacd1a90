"""Every write of a run that waits, parks, is signalled, cancelled, paused or retried is once the
last one of its process, undone or unanswered.

Whoever told the run something says it all again to the next engine, as one does who had no answer;
the run ends as if there had been no crash.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import pytest

from perdure.client.engine import Engine
from perdure.client.run import Run
from perdure.codec.journal import decode_row
from perdure.flow.step import step
from perdure.kernel.fold import fold
from perdure.model.errors import (
    Failure,
    NotFound,
    PerdureError,
    Permanent,
    RunFinished,
    StoreError,
)
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from perdure.stores.answers import StoredRow
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
from tests.virtual.engines import engine_on, graph, node, task, wait, wait_for
from tests.virtual.stores import VirtualFile, VirtualStore
from tests.virtual.threads import run

LARGE = "x" * 6000

#: How often an attempt was made, by its task.
made: Counter[tuple[str, int]] = Counter()


def note() -> None:
    made[current_step().idempotency_key, current_step().attempt - 1] += 1


@step
async def work(value: Any = None, seconds: float = 0.01) -> Any:
    note()
    await asyncio.sleep(seconds)
    return value


@step(retry=Retry(3, initial=1.5, jitter=0))
async def flaky() -> str:
    note()
    if current_step().attempt < 3:
        raise Failure("not yet")
    return "at last"


@step
async def gate(ok: bool) -> str:
    note()
    if not ok:
        raise Permanent("not before somebody says so")
    return "open"


def echo(id: str, value: Any = 0, seconds: float = 0.01) -> dict[str, Any]:
    return task(id, "work", {"value": value, "seconds": seconds})


HELD = graph(
    "held",
    [echo("a"), node("f", "FORK"), wait_for("one", "go"), echo("heard", "{{tasks.one.output}}"),
     wait("nap", "1500ms"), node("j", "JOIN"), wait_for("two", "go"), echo("end")],
    ["a f", "f one", "one heard", "heard j", "f nap", "nap j", "j two", "two end"],
    output={"one": "{{tasks.heard.output.k}}", "two": "{{size(tasks.two.output.k)}}"},
)  # fmt: skip
NAP = graph(
    "nap", [echo("a", 1), wait("b", "1500ms"), task("flaky"), echo("d", "{{tasks.a.output}}")]
)
LATE = graph("late", [echo("a"), wait_for("never", "never", "1500ms"), echo("b")])
STUCK = graph(
    "stuck",
    [echo("a"), node("f", "FORK"), echo("long", 0, 600.0), wait_for("never", "never"),
     wait("year", "365d"), node("j", "JOIN")],
    ["a f", "f long", "f never", "f year", "long j", "never j", "year j"],
)  # fmt: skip
REST = graph("rest", [echo("a"), wait_for("never", "never"), echo("b")])
GATED = graph(
    "gated",
    [echo("a", 1), task("gate", "gate", {"ok": "{{input.ok}}"}), wait("nap", "1s"),
     wait_for("go", "go"), echo("end", "{{tasks.go.output.k}}")],
)  # fmt: skip
PAUSED = graph("paused", [echo("a", 1), echo("b", 2, 0.5), echo("c", 3)])
ALL = (HELD, NAP, LATE, STUCK, REST, GATED, PAUSED)


async def send(told: Run[Any], k: Any, key: str) -> None:
    with suppress(NotFound):  # the run has ended
        await told.signal("go", {"k": k}, dedupe_key=key)


async def tell_held(told: Run[Any]) -> None:
    """One signal at once, twice; the other, a large one, when the run is parked."""
    await send(told, 1, "first")
    await send(told, 1, "first")
    await asyncio.sleep(2)
    await send(told, LARGE, "second")


async def cancel(told: Run[Any]) -> None:
    await asyncio.sleep(2)
    await told.cancel("enough")


async def retry(told: Run[Any]) -> None:
    """The signal is sent before the retry: it comes too late for the end, or is kept over it."""
    await send(told, 7, "seven")
    if not [r async for r in told.history() if r["do"] == "ReopenRun"]:
        with suppress(PerdureError):  # it fails: see below
            await told.result()
    while await told.status() == "failed":
        try:
            await told.retry(failed=True, input={"ok": True})
        except StoreError:
            await asyncio.sleep(1)  # the claim of the one who crashed is not free yet
    await send(told, 7, "seven")


async def pause(told: Run[Any]) -> None:
    with suppress(RunFinished):
        await told.pause()
        await asyncio.sleep(2)
        await told.unpause()


async def nothing(told: Run[Any]) -> None:
    """It goes on by itself."""


Tell = Callable[[Run[Any]], Awaitable[None]]
SCENES: dict[str, tuple[Any, Tell, tuple[str, Any]]] = {
    "held": (HELD, tell_held, ("completed", {"one": 1, "two": 6000})),
    "nap": (NAP, nothing, ("completed", {"d": 1})),
    "late": (LATE, nothing, ("failed", "workflow.timeout")),
    "stuck": (STUCK, cancel, ("canceled", None)),
    "rest": (REST, cancel, ("canceled", None)),
    "gated": (GATED, retry, ("completed", {"end": 7})),
    "paused": (PAUSED, pause, ("completed", {"c": 3})),
}
#: Scenes in which the run leaves memory; "stuck" always executes something.
PARKED = SCENES.keys() - {"stuck"}


@pytest.fixture(params=["memory", "sqlite"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store as another process would."""
    if request.param == "sqlite":
        return lambda: VirtualFile(tmp_path / "runs.db", synchronous="normal")
    memory = VirtualStore()
    return lambda: memory


def process(store: Any) -> AbstractAsyncContextManager[Engine]:
    """An engine that parks as soon as it can."""
    return dying(engine_on(store, *ALL, work, flaky, gate, park_after=0), store)


async def live(engine: Engine, name: str, id: str) -> tuple[str, Any]:
    """Start or join the run, tell it all it is to be told, and see how it ends."""
    g, tell, _ = SCENES[name]
    started: Run[Any] = await engine.start(g, {"ok": False}, id=id, if_exists="join")
    await tell(started)
    try:
        return "completed", await started.result(timeout="1h")
    except PerdureError as error:
        status = await started.status()
        return status, getattr(error, "kind", None) if status == "failed" else None


async def crash_once(opener: Opener, name: str, at: int, when: When) -> bool:
    """Crash at this write, then go on; False when the run has no such write."""
    made.clear()
    id = f"{at}-{when}"
    store = CrashingStore(opener(), at, when)
    ended = await until_crash(store, process(store), lambda engine: live(engine, name, id))
    if not store.crashed.is_set():
        assert ended == SCENES[name][2]
        assert (store.parked > 0) == (name in PARKED)
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
    check(rows, row, recorded, before)
    return True


def check(rows: list[StoredRow], row: Any, recorded: list[StoredRow], before: set[Any]) -> None:
    """The journal is whole, goes on where it ended, and says what its row says."""
    assert rows[: len(recorded)] == recorded
    assert [r.seq for r in rows] == list(range(1, len(rows) + 1))
    assert rows[-1].read <= row.mail
    assert (fold(t for r in rows for t in decode_row(r.body)).status, row.owner) == (
        row.status, None,
    )  # fmt: skip
    outcomes = task_outcomes(rows)
    assert len(outcomes) == len(set(outcomes)), "an outcome was decided twice"
    again = {outcome for outcome, times in made.items() if times > 1}
    assert again <= before - set(task_outcomes(recorded)), "made again though not in flight"
    assert max(made.values()) <= 2


@pytest.mark.rule("G-100", "G-6")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", SCENES)
def test_a_crash_at_any_write_changes_neither_what_a_run_waits_for_nor_how_it_ends(
    opener: Opener, name: str, when: When
) -> None:
    points = run(crash_points(lambda at: crash_once(opener, name, at, when)))
    assert points >= 4, f"only {points} crash points"
