"""Every write of a run is once the last one of its process, undone or unanswered.

Whatever the point, the next engine ends the run with the same output; an attempt is made again
only if it was in flight, and what was recorded stays as it was.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from perdure.client.engine import Engine
from perdure.codec.journal import decode_row
from perdure.flow.step import step
from perdure.graph.definition import Graph
from perdure.kernel.fold import fold
from perdure.model.errors import Failure
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from perdure.stores.sqlite.store import SqliteStore
from tests.virtual.crashing import (
    CrashingStore,
    Opener,
    When,
    crash_points,
    dying,
    outcomes,
    rows_of,
    until_crash,
)
from tests.virtual.engines import engine_on, graph, node, task
from tests.virtual.stores import VirtualStore
from tests.virtual.threads import run

LARGE = "x" * 6000

Made = Counter[tuple[str, int]]
made: Made = Counter()


@step
async def work(value: Any = None, seconds: float = 0.01) -> Any:
    made[current_step().node, current_step().attempt - 1] += 1
    await asyncio.sleep(seconds)
    return value


@step(retry=Retry(3, initial=1))
async def flaky() -> str:
    made[current_step().node, current_step().attempt - 1] += 1
    if current_step().attempt < 3:
        raise Failure("not yet")
    return "at last"


@step
async def instant(value: Any) -> Any:
    made[current_step().node, current_step().attempt - 1] += 1
    return value


def echo(id: str, value: Any, seconds: float = 0.01) -> dict[str, Any]:
    return task(id, "work", {"value": value, "seconds": seconds})


CHAIN = graph(
    "chain",
    [echo("a", "{{input.text}}"), echo("b", "{{tasks.a.output}}"),
     task("c", "instant", {"value": LARGE}), echo("d", "{{tasks.c.output}}")],
    output={"b": "{{tasks.b.output}}", "d": "{{size(tasks.d.output)}}"},
)  # fmt: skip
FORK = graph(
    "fork",
    [node("f", "FORK"), echo("a", 1, 0.01), echo("b", 2, 0.02), echo("c", 3, 0.02),
     echo("c2", 4), node("j", "JOIN"), echo("end", "{{tasks.a.output + tasks.c2.output}}")],
    ["f a", "f b", "f c", "c c2", "a j", "b j", "c2 j", "j end"],
)  # fmt: skip
SWITCH = graph(
    "switch",
    [echo("a", "{{input.text}}"), node("s", "SWITCH"), echo("yes", 1), echo("no", 2),
     echo("end", "{{tasks.s.output}}")],
    ["a s", {"from": "s", "to": "yes", "condition": "{{tasks.a.output == 'hello'}}"},
     {"from": "s", "to": "no", "default": True}, "yes end", "no end"],
)  # fmt: skip
RETRY = graph("retry", [task("flaky"), echo("end", "{{tasks.flaky.output}}")])

GRAPHS = {
    "chain": (CHAIN, {"b": "hello", "d": 6000}),
    "fork": (FORK, {"end": 5}),
    "switch": (SWITCH, {"end": "hello"}),
    "retry": (RETRY, {"end": "at last"}),
}


@pytest.fixture(params=["memory", "sqlite"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens the same store as another process would."""
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "runs.db", synchronous="normal")
    memory: list[VirtualStore] = []

    def one() -> VirtualStore:
        if not memory:
            memory.append(VirtualStore())
        return memory[0]

    return one


def process(store: Any) -> AbstractAsyncContextManager[Engine]:
    """An engine that serves them all."""
    return dying(engine_on(store, *(g for g, _ in GRAPHS.values()), work, flaky, instant), store)


async def begun(engine: Engine, g: Graph, id: str) -> Any:
    """Start or join a run, and how it ends."""
    return await engine.run(g, {"text": "hello"}, id=id)


async def crash_once(opener: Opener, name: str, at: int, when: When) -> bool:
    """Crash at this write, then go on; False when the run has no such write."""
    g, expected = GRAPHS[name]
    id = f"{at}-{when}"
    made.clear()
    store = CrashingStore(opener(), at, when)
    ended = await until_crash(store, process(store), lambda engine: begun(engine, g, id))
    if not store.crashed.is_set():
        assert ended == expected
        return False
    before = made.copy()
    inner = opener()
    await inner.open()
    recorded = await rows_of(inner, name, id)
    async with process(inner) as engine:
        output = await engine.run(g, {"text": "hello"}, id=id)
        rows = await rows_of(inner, name, id)
    assert output == expected
    assert rows[: len(recorded)] == recorded
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    folded = fold(t for row in rows for t in decode_row(row.body))
    assert folded.status == "completed"
    in_flight = Counter(set(before) - outcomes(recorded))
    assert made - in_flight == Counter(set(made)), "made again though not in flight"
    return True


@pytest.mark.rule("G-100", "G-6")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_crash_at_any_write_changes_no_result_and_repeats_only_what_was_in_flight(
    opener: Opener, name: str, when: When
) -> None:
    points = run(crash_points(lambda at: crash_once(opener, name, at, when)))
    assert points >= 4, f"only {points} crash points"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_run_ends_though_every_process_dies_at_its_third_write(
    opener: Opener, name: str, when: When
) -> None:
    async def main() -> None:
        g, expected = GRAPHS[name]
        made.clear()
        for _ in range(30):
            store = CrashingStore(opener(), 3, when)
            ended = await until_crash(store, process(store), lambda engine: begun(engine, g, "1"))
            if not store.crashed.is_set():
                assert ended == expected
                break
        else:
            raise AssertionError("no end after 30 crashes")

    run(main())
