"""Every write of a saga is once the last one of its process, undone or unanswered: what was done is
undone once, the last completed first, and nothing of a run that succeeded; the failure stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from perdure import Engine, Failure, Retry, Saga, SagaContext
from perdure.codec.journal import decode_row
from perdure.kernel.actions import (
    BeginCompensation,
    CancelTasks,
    CompensateTask,
    CompleteTask,
    CreateTask,
    FailTask,
    FinishRun,
)
from perdure.model.errors import Canceled, RunFailed, TimedOut
from tests.virtual.crashing import (
    CrashingStore,
    Opener,
    When,
    crash_points,
    dying,
    rows_of,
    until_crash,
)
from tests.virtual.engines import engine_on
from tests.virtual.threads import run

LARGE = "x" * 6000

#: What undos found around them: step, what its step gave, what steps noted before.
FOUND: list[tuple[str, Any, Any]] = []


async def work(ctx: SagaContext[str]) -> str:
    await asyncio.sleep(0.01)
    ctx.set("last", ctx.node)
    return ctx.node + LARGE


async def slow(ctx: SagaContext[str]) -> str:
    await asyncio.sleep(5)
    return ctx.node


async def declined(ctx: SagaContext[str]) -> None:
    await asyncio.sleep(0.01)
    raise Failure(f"declined for {ctx.payload}", kind="no-funds-of-a-saga")


async def late_then_declined(ctx: SagaContext[str]) -> None:
    """Nobody knows what the first attempt did; the second one fails of its own."""
    await asyncio.sleep(5 if ctx.attempt == 1 else 0.01)
    raise Failure("declined", kind="no-funds-of-a-saga")


async def unsayable(ctx: SagaContext[str]) -> float:
    await asyncio.sleep(0.01)
    return float("nan")


async def undo(ctx: SagaContext[str]) -> None:
    await asyncio.sleep(0.01)
    step = ctx.node.removesuffix("~undo")
    FOUND.append((step, ctx.output(step)[: len(step)], ctx.get("last")))


async def undo_blindly(ctx: SagaContext[str]) -> None:
    """Of a step of which it may not be known whether it did anything."""
    await asyncio.sleep(0.01)


async def closed(ctx: SagaContext[str]) -> None:
    raise Failure("the bank is closed", kind="closed-bank-of-a-saga")


def saga(name: str, **options: Any) -> Saga[str]:
    return Saga(name, str, max_duration=options.pop("max_duration", "1h"), **options)


succeeds = saga("succeeds").step("a", work, undo=undo).step("b", work, undo=undo)
fails = (
    saga("fails").step("a", work, undo=undo).step("b", work, undo=undo)
    .step("gift", work, undo=undo, when=lambda payload: payload == "vip").step("c", declined)
)  # fmt: skip
parallel = (
    saga("parallel").step("a", work, undo=undo).step("b", slow, undo=undo, depends_on=["a"])
    .step("c", work, undo=undo, depends_on=["a"]).step("d", declined, depends_on=["c"])
)  # fmt: skip
stuck = (
    saga("stuck").step("a", work, undo=undo).step("b", work, undo=closed, undo_retry=2)
    .step("c", declined)
)  # fmt: skip
canceled = saga("canceled").step("a", work, undo=undo).step("b", slow, undo=undo_blindly)
late = (
    saga("late", max_duration="3s").step("a", work, undo=undo)
    .step("b", slow, undo=undo_blindly, undo_unknown=False)
)  # fmt: skip
doubtful = (
    saga("doubtful").step("a", work, undo=undo)
    .step("b", late_then_declined, undo=undo_blindly, timeout=1, retry=Retry(2, initial=1))
)  # fmt: skip
unsaid = saga("unsaid").step("a", work, undo=undo).step("b", unsayable, undo=undo_blindly)
THINGS = (succeeds, fails, parallel, stuck, canceled, late, doubtful, unsaid)


async def play(engine: Engine, definition: Saga[str]) -> Any:
    started = await engine.start(definition, "ann", id="1", if_exists="join")
    if definition is canceled and await started.status() == "running":
        await asyncio.sleep(1)
        if await started.status() == "running":
            await started.cancel("enough")
    try:
        return sorted(await started.result())
    except (RunFailed, Canceled, TimedOut) as failure:
        said = str(failure).split(" before ")[0].split(": value at ")[0]
        return said, failure.details and failure.details["undone"]


#: What a run comes to: its outcome, and what may have been undone.
PLAYS: dict[str, tuple[Saga[str], Any]] = {
    "succeeds": (succeeds, ["a", "b"]),
    "fails": (fails, ("node c failed: declined for ann", ["b", "a"])),
    "parallel": (parallel, ("node d failed: declined for ann", ["b", "c", "a"])),
    "stuck": (stuck, ("node c failed: declined for ann", ["a"])),
    "canceled": (canceled, ("enough", ["b", "a"])),
    "late": (late, ("the run reached its max_duration", ["a"])),
    "doubtful": (doubtful, ("node b failed: declined", ["b", "a"])),
    "unsaid": (
        unsaid,
        ("node b failed: the output of node b cannot be recorded", ["b", "a"]),
    ),
}


def process(store: Any) -> AbstractAsyncContextManager[Engine]:
    """An engine that serves them all."""
    return dying(engine_on(store, *THINGS), store)


async def crash_once(fresh: Callable[[], Opener], name: str, at: int, when: When) -> bool:
    """Crash at this write, then go on; False when there is no such write."""
    definition, expected = PLAYS[name]
    opener = fresh()
    FOUND.clear()
    store = CrashingStore(opener(), at, when)
    ended = await until_crash(store, process(store), lambda engine: play(engine, definition))
    if not store.crashed.is_set():
        assert ended == expected
        return False
    inner = opener()
    await inner.open()
    before = await rows_of(inner, name, "1")
    async with process(inner) as engine:
        assert await play(engine, definition) == expected
        rows = await rows_of(inner, name, "1")
        assert rows[: len(before)] == before, "what was recorded is not what it was"
        judge(rows)
    return True


def judge(rows: Any) -> None:
    """What was undone had been done, once, the last completed first, and after all else."""
    actions = [a for row in rows for t in decode_row(row.body) for a in t.actions]
    completed = [a.node for a in actions if isinstance(a, CompleteTask)]
    assert len(completed) == len(set(completed))
    done = [node for action in actions for node in ended(action) if not node.endswith("~undo")]
    begun = [a.node.removesuffix("~undo") for a in actions
             if isinstance(a, CreateTask) and a.node.endswith("~undo")]  # fmt: skip
    assert begun == [node for node in reversed(done) if node in begun]
    undone = [a.node for a in actions if isinstance(a, CompensateTask)]
    assert undone == [node for node in begun if f"{node}~undo" in completed]
    ends = [a for a in actions if isinstance(a, FinishRun)]
    assert len(ends) == 1
    if ends[0].status == "completed":
        assert begun == []
    else:
        (order,) = [a for a in actions if isinstance(a, BeginCompensation)]
        assert ends[0].failure is not None
        assert ends[0].failure.message == order.failure.message
    for step, output, last in FOUND:
        assert output == step
        assert last in done


def ended(action: object) -> tuple[str, ...]:
    """The nodes that completed by this action, or of which nobody knows whether they did."""
    if isinstance(action, CompleteTask) or (isinstance(action, FailTask) and action.unknown):
        return (action.node,)
    return action.nodes if isinstance(action, CancelTasks) and action.unknown else ()


@pytest.mark.rule("S-15", "S-16", "S-17", "D-18", "D-20", "S-7", "SX-1")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", PLAYS)
def test_a_crash_at_any_write_undoes_what_was_done_once_and_nothing_else(
    fresh: Callable[[], Opener], name: str, when: When
) -> None:
    # scenario 208
    points = run(crash_points(lambda at: crash_once(fresh, name, at, when)))
    assert points >= 3, f"only {points} crash points"
