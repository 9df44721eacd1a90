"""Children that are their parent's worker's from birth, and what becomes of those it never hears
of."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from perdure import Context, Signal, step, workflow
from perdure.stores.answers import Claim
from perdure.stores.rows import Message
from tests.virtual.engines import engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore

go = Signal("go", int)
done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


@step
async def note(value: Any) -> Any:
    done.append(value)
    return value


@workflow(max_duration=None)
async def child(ctx: Context, value: int) -> int:
    await note(value)
    return await ctx.wait(go)


@workflow(max_duration=None)
async def parent(ctx: Context, ids: list[str]) -> list[int]:
    return await asyncio.gather(*(ctx.child(child, n, id=id) for n, id in enumerate(ids)))


inner = graph("inner", [task("note", "note", "{{input}}")], output="{{tasks.note.output}}")
outer = graph(
    "outer", [{"id": "ask", "type": "CHILD", "spec": {"workflow": "inner", "input": "{{input}}"}}]
)
THINGS = (parent, child, inner, outer, note)


class Claimed(LateStore):
    """Notes whose runs were claimed."""

    def __init__(self) -> None:
        super().__init__()
        self.claimed: list[str] = []

    async def claim_runs(
        self, worker: str, definitions: Sequence[str], limit: int
    ) -> Sequence[Claim]:
        found = await super().claim_runs(worker, definitions, limit)
        self.claimed += [claim.definition for claim in found]
        return found


class Deaf(VirtualStore):
    """Tells nobody in this process what is in a mailbox."""

    def subscribe(self, call: Callable[[], None], posted: Any = None) -> Callable[[], None]:
        return super().subscribe(call, None)


def test_a_child_that_is_made_goes_on_at_once_and_is_claimed_by_nobody() -> None:
    async def main() -> None:
        store = Claimed()
        async with engine_on(store, *THINGS) as engine:
            started = await engine.start(parent, ["a", "b"], id="1")
            await asyncio.sleep(0.1)
            assert sorted(live.run_id for live in engine._shell.live.values()) == ["1", "a", "b"]
            assert done == [0, 1]
            for id in ("a", "b"):
                await engine.get(child, id).signal(go, 3)
            assert await started.result() == [3, 3]
            assert await engine.run(outer, 5, id="1") == {"ask": 5}
            assert store.claimed == []
            assert engine._shell.in_hand == set()
            assert engine._shell.births._expected == {}

    run(main())


def test_one_that_was_there_before_is_left_to_whoever_holds_it() -> None:
    async def main() -> None:
        store = Claimed()
        async with engine_on(store, *THINGS) as first, engine_on(store, *THINGS) as second:
            await first.start(child, 7, id="a")
            started = await second.start(parent, ["a"], id="1")
            await asyncio.sleep(1)
            assert [live.run_id for live in second._shell.live.values()] == ["1"]
            assert second._shell.in_hand == set()
            await first.get(child, "a").signal(go, 3)
            assert await started.result() == [3]
            assert done == [7]

    run(main())


def test_one_that_this_worker_never_hears_of_goes_on_a_little_later() -> None:
    async def main() -> None:
        store = Deaf()
        async with engine_on(store, *THINGS) as engine:
            started = await engine.start(parent, ["a"], id="1")
            await asyncio.sleep(0.4)
            assert done == []
            await asyncio.sleep(60)
            assert done == [0]
            assert engine._shell.in_hand == set()
            await engine.get(child, "a").signal(go, 3)
            assert await started.result() == [3]

    run(main())


def test_a_worker_that_was_declared_dead_meanwhile_does_not_take_it() -> None:
    async def main() -> None:
        store = LateStore(latency=1.0)
        async with engine_on(store, *THINGS) as engine:
            starting = asyncio.ensure_future(engine.start(parent, ["a"], id="1"))
            await asyncio.sleep(1.5)
            store.crash(engine._shell.worker)
            started = await starting
            await asyncio.sleep(60)
            assert done == [0]
            await engine.get(child, "a").signal(go, 3)
            assert await started.result() == [3]

    run(main())


def test_who_closes_leaves_them_to_others() -> None:
    async def main() -> None:
        store = LateStore()
        async with engine_on(store, *THINGS) as first:
            started = await first.start(parent, ["a"], id="1")
            first._shell.births.close()
            assert first._shell.in_hand == set()
        async with engine_on(store, *THINGS) as second:
            await asyncio.sleep(60)
            await second.get(child, "a").signal(go, 3)
            assert await second.get(parent, "1").result() == [3]
            assert done == [0]
        assert started.id == "1"

    run(main())


def test_one_that_is_asked_for_twice_before_the_first_answer_goes_on_at_once() -> None:
    async def main() -> None:
        store = Claimed()
        begins = workflow(max_duration=None, name="begins")(waits_and_asks)
        async with engine_on(store, begins, *THINGS) as first:
            started = await first.start(begins, id="1")
        await store.post([Message("begins", "1", "m", "signal", "go", b"1")])
        async with engine_on(store, begins, *THINGS) as second:
            # What its mail leads to is under way as it is loaded, and looks as if nobody had asked.
            await asyncio.sleep(0.2)
            assert done == [5]
            assert "child" not in store.claimed
            await second.get(child, "a").signal(go, 3)
            assert await second.get(begins, started.id).result() == 3

    run(main())


async def waits_and_asks(ctx: Context) -> int:
    await ctx.wait(go)
    return await ctx.child(child, 5, id="a")
