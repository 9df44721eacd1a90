"""Attempts of many runs begin in one task, whatever they do to it: each ends as it would alone.

Graphs of steps that wait or do not, raise what they like, cancel their task or block the loop;
while runs are paused, the lease is over and back, the store is slow or away, and engines close.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from perdure.client.engine import Engine
from perdure.engine import spawned
from perdure.model.errors import RunFailed, StepFailed
from tests.property.engine.attempts import Plan, cancels_later, do, made, planned
from tests.virtual.engines import engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore, down

WORLDS = 60
PAUSES = [0, 0, 0.001, 0.3, 1, 3]
LATE = graph("late", [task("a", "cancels-later", "{{input}}")])


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Any:
    broken: list[BaseException] = []

    def is_told(text: str, *, exc_info: BaseException) -> None:
        broken.append(exc_info)

    monkeypatch.setattr(spawned._log, "error", is_told)
    made.clear()
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)
    assert not broken, "no task of the engine's fails"


class World:
    """Some runs on a store, and engines that are disturbed at it."""

    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.store = random.choice([VirtualStore, LateStore])()
        self.plans = [planned(f"g{n}", random) for n in range(random.randint(1, 5))]
        self.runs = [(p, str(n)) for p in self.plans for n in range(random.randint(1, 4))]

    def engine(self) -> Engine:
        things = [*(plan.graph for plan in self.plans), LATE, do, cancels_later]
        park_after, grace = self.random.choice([1, 10]), self.random.choice([0, 1, 30])
        return engine_on(self.store, *things, park_after=park_after, grace=grace)

    async def start(self, engine: Engine) -> None:
        for plan, id in self.runs:
            await engine.start(plan.graph, id=id)
            if self.random.random() < 0.3:
                await asyncio.sleep(self.random.choice(PAUSES))

    async def disturb(self, engine: Engine) -> None:
        """Pause runs, take the lease away, let the store be slow or away; and make it good."""
        random, shell = self.random, engine._shell
        for _ in range(random.randint(0, 8)):
            await asyncio.sleep(random.choice(PAUSES))
            kind, (plan, id) = random.choice(["pause", "lease", "store"]), random.choice(self.runs)
            if kind == "pause":
                run = engine.get(plan.graph, id)
                with suppress(Exception):  # it has ended
                    await run.pause()
                    await asyncio.sleep(random.choice(PAUSES))
                    await run.unpause()
            elif kind == "lease":
                before, shell.lease_over = shell.lease_over, 0
                await asyncio.sleep(random.choice(PAUSES))
                shell.leased(before)
            elif isinstance(self.store, LateStore):
                self.store.failures += down(random.randint(0, 2))
                self.store.written_all_the_same = random.random() < 0.5
                self.store.latency = random.choice([0, 0.001, 0.1, 1])

    async def check(self, engine: Engine) -> None:
        """Every run ends, each as it is to end, and of all of them nothing is left."""
        async with asyncio.timeout(5_000):
            for plan, id in self.runs:
                assert await _ended(engine, plan, id) == plan.output
        await asyncio.sleep(100)
        shell = engine._shell
        assert (shell.live, shell.waiters._futures, len(shell.shared_runner._queue)) == ({}, {}, 0)
        assert len(shell.shared_runner._free) <= 1
        assert len(shell.tasks) <= 4 + len(shell.shared_runner._free), "the engine's own"

    def expected(self) -> Counter[tuple[str, str, int]]:
        """How often each attempt is made where no engine closes: once."""
        return Counter(
            (f"{plan.graph.name}/{id}", node, number)
            for plan, id in self.runs
            for node, attempts in plan.attempts.items()
            for number in range(1, attempts + 1)
        )


async def _ended(engine: Engine, plan: Plan, id: str) -> Any:
    try:
        return await engine.get(plan.graph, id).result()
    except (RunFailed, StepFailed):
        return None


@pytest.mark.rule("D-29")
@pytest.mark.parametrize("part", range(4))
def test_every_run_ends_as_it_would_alone_and_each_attempt_is_made_once(part: int) -> None:
    for seed in range(part, WORLDS, 4):
        made.clear()
        world = World(seed)

        async def main(world: World = world) -> None:
            async with world.engine() as engine:
                await world.start(engine)
                await world.disturb(engine)
                await world.check(engine)

        run(main())
        assert made == world.expected(), f"seed {seed}"


@pytest.mark.parametrize("part", range(4))
def test_what_closes_under_way_is_made_again_by_the_next_engine(part: int) -> None:
    for seed in range(part, WORLDS, 4):
        made.clear()
        world = World(seed)

        async def main(world: World = world) -> None:
            async with world.engine() as engine:
                await world.start(engine)
                await world.disturb(engine)
            async with world.engine() as engine:
                await world.check(engine)

        run(main())
        assert made.keys() == world.expected().keys(), f"seed {seed}"


@pytest.mark.parametrize("part", range(4))
def test_what_one_step_leaves_behind_cancels_one_attempt_that_is_made_once_more(part: int) -> None:
    for seed in range(part, WORLDS, 4):
        made.clear()
        world = World(seed)

        async def main(world: World = world) -> None:
            async with world.engine() as engine:
                left = await engine.start(LATE, {"seconds": world.random.choice(PAUSES)})
                await world.start(engine)
                await world.check(engine)
                assert await left.result() == {"a": None}

        run(main())
        expected = world.expected()
        assert made.keys() == expected.keys(), f"seed {seed}"
        assert (made - expected).total() <= 1, f"seed {seed}"
