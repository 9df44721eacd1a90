"""Everything goes wrong by chance, then stops going wrong: every run ends right.

Slow answers, lost answers, refused reads, engines killed, closed, or presumed dead while they go
on working: with the seed that is printed the same happens again, in virtual time.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from perdure.codec.journal import decode_row
from perdure.flow.step import step
from perdure.graph.definition import Graph
from perdure.kernel.fold import fold
from perdure.model.errors import Failure, PerdureError, StoreError
from perdure.model.policy import Retry
from perdure.model.step_context import current_step
from perdure.stores.answers import Claim
from tests.virtual.crashing import rows_of
from tests.virtual.engines import engine_on, graph, kill, node, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore

RUNS = 8


class RoughStore(VirtualStore):
    """Answers late, or not, or with an error after it has written."""

    durable = True

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance
        self.rough = True

    def commit(self, rows: Sequence[Any], done: Any) -> None:
        self._roughly(super().commit, rows, done)

    def start(self, runs: Sequence[Any], done: Any) -> None:
        self._roughly(super().start, runs, done)

    def _roughly(self, write: Any, rows: Sequence[Any], done: Any) -> None:
        later = asyncio.get_running_loop().call_later
        fate = self.chance.random() if self.rough else 1.0
        delay = self.chance.uniform(0, 0.05)
        if fate < 0.08:  # not written
            later(delay, done, StoreError("the disk is away"))
        elif fate < 0.16:  # written, but who knows
            write(rows, lambda _: later(delay, done, StoreError("the answer was lost")))
        elif fate < 0.5:  # written now, told later
            write(rows, lambda answer: later(delay, done, answer))
        else:
            later(delay, write, rows, done)

    async def _stumble(self) -> None:
        await asyncio.sleep(self.chance.uniform(0, 0.02))
        if self.rough and self.chance.random() < 0.15:
            raise StoreError("the disk is away")

    async def load(self, key: bytes) -> Any:
        await self._stumble()
        return await super().load(key)

    async def payloads(self, key: bytes, refs: Any) -> Any:
        await self._stumble()
        return await super().payloads(key, refs)

    async def claim_runs(self, *args: Any) -> Sequence[Claim]:
        await self._stumble()
        return await super().claim_runs(*args)

    async def give_back(self, *args: Any) -> None:
        await self._stumble()
        await super().give_back(*args)


@step
async def add(n: int, seconds: float = 0.0) -> int:
    if seconds:
        await asyncio.sleep(seconds)
    return n + 1


@step
async def large(n: int) -> list[int]:
    return [n] * 3000


@step(retry=Retry(4, initial=0.2))
async def flaky(n: int) -> int:
    await asyncio.sleep(0.05)
    if current_step().attempt <= n % 4:
        raise Failure("not yet")
    return n


def plus(id: str, n: str, seconds: float = 0.0) -> dict[str, Any]:
    return task(id, "add", {"n": n, "seconds": seconds})


BIG = graph(
    "big",
    [
        plus("a", "{{input.n}}", 0.3),
        node("fork", "FORK"),
        plus("b1", "{{tasks.a.output}}", 0.2),
        plus("b2", "{{tasks.b1.output}}"),
        task("c", "flaky", {"n": "{{input.n}}"}),
        task("d", "large", {"n": "{{tasks.a.output}}"}),
        plus("d2", "{{tasks.d.output[7]}}", 0.5),
        node("join", "JOIN"),
        node("route", "SWITCH"),
        plus("odd", "{{tasks.b2.output}}"),
        plus("even", "{{tasks.d2.output}}", 0.1),
        plus("end", "{{tasks.d.output[0] + tasks.c.output}}"),
    ],
    [
        *("a fork", "fork b1", "b1 b2", "fork c", "fork d", "d d2"),
        *("b2 join", "c join", "d2 join", "join route", "odd end", "even end"),
        {"from": "route", "to": "odd", "condition": "{{input.n % 2 == 1}}"},
        {"from": "route", "to": "even", "default": True},
    ],
    output={"end": "{{tasks.end.output}}"},
)


def expected(n: int) -> dict[str, int]:
    return {"end": n + 1 + n + 1}


class World:
    """A store, and the engines on it one after the other, sometimes two."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = RoughStore(self.chance)

    async def live(self) -> None:
        """Let one engine live for a while, and end in one of the ways there are."""
        engine = engine_on(self.store, BIG, add, large, flaky, grace=self.chance.choice([0, 0.3]))
        try:
            await engine.__aenter__()
        except StoreError:
            return
        starts = [
            asyncio.ensure_future(engine.start(BIG, {"n": n}, id=f"r{n}", if_exists="join"))
            for n in self.chance.sample(range(RUNS), 3)
        ]
        await asyncio.sleep(self.chance.uniform(0.05, 2))
        way = self.chance.random()
        if way < 0.4:
            await kill(engine)
            self.store.crash(engine._shell.worker)
        elif way < 0.7:
            await engine.__aexit__()
        else:  # presumed dead, while it goes on working
            self.store.crash(engine._shell.worker)
            await self.live()
            await kill(engine)
            self.store.crash(engine._shell.worker)
        for start in starts:
            start.cancel()
        for end in await asyncio.gather(*starts, return_exceptions=True):
            known = (PerdureError, asyncio.CancelledError)
            assert not isinstance(end, BaseException) or isinstance(end, known)

    async def end(self) -> list[Any]:
        """Nothing goes wrong any more: the outputs of all runs."""
        self.store.rough = False
        async with engine_on(self.store, BIG, add, large, flaky) as engine:
            return await asyncio.gather(
                *(engine.run(BIG, {"n": n}, id=f"r{n}", timeout="1d") for n in range(RUNS))
            )


async def check(store: VirtualStore, graph: Graph, id: str) -> None:
    rows = await rows_of(store, graph.name, id)
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    transitions = [t for row in rows for t in decode_row(row.body)]
    assert fold(transitions).status == (await store.describe(graph.name, id)).status
    assert [t.at for t in transitions] == sorted(t.at for t in transitions)
    ended = Counter(
        (action.node, action.attempt)
        for transition in transitions
        for action in transition.actions
        if type(action).__name__ in ("CompleteTask", "RetryTask", "FailTask")
    )
    assert set(ended.values()) == {1}, "an attempt was accepted twice"


@pytest.mark.rule("G-100", "G-99")
@pytest.mark.parametrize("seed", range(40))
def test_whatever_goes_wrong_every_run_ends_right_once_it_stops(seed: int) -> None:
    async def main() -> None:
        world = World(seed)
        for _ in range(world.chance.randint(2, 8)):
            await world.live()
        assert await world.end() == [expected(n) for n in range(RUNS)]
        for n in range(RUNS):
            await check(world.store, BIG, f"r{n}")

    run(main())
