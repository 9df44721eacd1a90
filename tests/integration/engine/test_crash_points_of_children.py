"""Every write of a parent and its child, and of a run that goes on as new, is once the last one of
its process, undone or unanswered: there is one child, its end is told once, nothing is lost."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from perdure import Channel, Context, Failure, Graph, Signal, step, workflow
from perdure.client.engine import Engine
from perdure.codec.journal import decode_row
from perdure.kernel.actions import CancelChild, ChildFound, CompleteTask, StartChild
from perdure.model.errors import Canceled
from tests.virtual.crashing import (
    CrashingStore,
    Opener,
    When,
    crash_points,
    dying,
    rows_of,
    until_crash,
)
from tests.virtual.engines import engine_on, graph, task
from tests.virtual.threads import run

LARGE = "x" * 6000

go = Signal("go", int)
news = Channel("news", int)


@step
async def work(value: Any) -> Any:
    await asyncio.sleep(0.01)
    return value


@workflow(max_duration=None)
async def child(ctx: Context, text: str) -> str:
    await ctx.sleep(1)
    return await work(text) + LARGE


@workflow(max_duration=None)
async def parent(ctx: Context) -> list[Any]:
    await work(1)
    one, other = await asyncio.gather(ctx.child(child, "a"), ctx.child(child, LARGE, id="other"))
    spawned = await ctx.spawn(child, "b", id="spawned")
    return [len(one), len(other), spawned, await work(2)]


@workflow(max_duration=None)
async def endless(ctx: Context) -> None:
    try:
        await ctx.wait(go)
    finally:
        await work("tidy")


@workflow(max_duration=None)
async def gives_up(ctx: Context) -> str:
    try:
        async with asyncio.timeout(2):
            await ctx.child(endless, id="owned")
    except TimeoutError:
        pass
    return str(await work("gave up"))


@workflow(max_duration=None)
async def lives(ctx: Context, life: int) -> str:
    seen = await ctx.receive(news)
    await work(seen)
    if life < 3:
        ctx.continue_as_new(life + 1)
    await ctx.child(child, "last")
    return f"{life} {seen}"


def asks(name: str, workflow: str, **rest: Any) -> Graph:
    """A graph that works, asks for a run of the workflow, and works again."""
    node = {"id": "ask", "type": "CHILD", "spec": {"workflow": workflow, "input": "{{input}}"}}
    return graph(
        name, [task("work", "work", "{{input}}"), {**node, **rest}, task("last", "work", 2)]
    )


inner = asks("inner", "child")


@workflow(max_duration=None)
async def between(ctx: Context, text: str) -> int:
    return len(await ctx.child(inner, text))


outer = asks("outer", "between")


@workflow(max_duration=None)
async def second_time(ctx: Context, text: str) -> int:
    if not ctx.id.endswith("~2"):
        raise Failure("not yet")
    return len(text)


tries = asks("tries", "second-time", retry={"attempts": 2})

THINGS = (parent, child, endless, gives_up, lives, work, inner, between, outer, second_time, tries)


def process(store: Any) -> AbstractAsyncContextManager[Engine]:
    """An engine that serves them all."""
    return dying(engine_on(store, *THINGS), store)


async def play_parent(engine: Engine) -> Any:
    return await engine.run(parent, id="1")


async def play_outer(engine: Engine) -> Any:
    return await engine.run(outer, LARGE, id="1")


async def play_tries(engine: Engine) -> Any:
    return await engine.run(tries, LARGE, id="1")


async def play_giving_up(engine: Engine) -> Any:
    result = await engine.run(gives_up, id="1")
    with pytest.raises(Canceled, match="does not wait for it any more"):
        await engine.get(endless, "owned").result()
    return result


async def play_lives(engine: Engine) -> Any:
    started = await engine.start(lives, 1, id="1", if_exists="join")
    if await started.status() == "running":
        for number in range(3):
            await started.signal(news, number, dedupe_key=f"n{number}")
    return await started.result()


PLAYS: dict[str, tuple[Callable[[Engine], Any], Any, tuple[tuple[str, str], ...]]] = {
    "parent": (
        play_parent, [6001, 12000, "spawned", 2],
        (("child", "parent/1/child"), ("child", "other"), ("child", "spawned")),
    ),
    "outer": (
        play_outer, {"last": 2},
        (
            ("between", "outer/1/ask"), ("inner", "between/outer/1/ask/inner"),
            ("child", "inner/between/outer/1/ask/inner/ask"),
        ),
    ),
    "tries": (
        play_tries, {"last": 2},
        (("second-time", "tries/1/ask"), ("second-time", "tries/1/ask~2")),
    ),
    "gives-up": (play_giving_up, "gave up", (("endless", "owned"),)),
    "lives": (play_lives, "3 2", (("child", "lives/1/child@3"),)),
}  # fmt: skip


async def crash_once(fresh: Callable[[], Opener], name: str, at: int, when: When) -> bool:
    """Crash at this write, then go on; False when there is no such write."""
    play, expected, children = PLAYS[name]
    opener = fresh()
    store = CrashingStore(opener(), at, when)
    ended = await until_crash(store, process(store), play)
    if not store.crashed.is_set():
        assert ended == expected
        return False
    inner = opener()
    await inner.open()
    recorded = {run: await rows_of(inner, *run) for run in ((name, "1"), *children)}
    async with process(inner) as engine:
        assert await play(engine) == expected
        await asyncio.sleep(10)
        runs = sorted([(info.workflow, info.id) async for info in engine.runs()])
        assert runs == sorted([(name, "1"), *children])
        for run_name, before in recorded.items():
            rows = await rows_of(inner, *run_name)
            later = [row for row in before if row.seq >= rows[0].seq]
            assert rows[: len(later)] == later, f"{run_name} is not what it was"
            assert [row.seq for row in rows] == list(range(rows[0].seq, rows[0].seq + len(rows)))
            _told_once(rows)
    return True


def _told_once(rows: Any) -> None:
    """Nothing of a child is recorded twice."""
    actions = [a for row in rows for t in decode_row(row.body) for a in t.actions]
    said = [
        (type(action).__name__, action.task, getattr(action, "attempt", 0))
        for action in actions
        if isinstance(action, (StartChild, CompleteTask, CancelChild))
    ]
    assert len(said) == len(set(said))
    asked = Counter(action.task for action in actions if isinstance(action, StartChild))
    assert Counter(action.task for action in actions if isinstance(action, ChildFound)) <= asked


@pytest.mark.rule("W-34", "W-35")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", PLAYS)
def test_a_crash_at_any_write_makes_no_second_child_and_loses_no_end(
    fresh: Callable[[], Opener], name: str, when: When
) -> None:
    # scenarios 51, 208
    points = run(crash_points(lambda at: crash_once(fresh, name, at, when)))
    assert points >= 6, f"only {points} crash points"
