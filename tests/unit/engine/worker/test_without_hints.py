"""An engine on a store that tells nobody anything: what is due and what was sent is found by
looking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from perdure import Context, workflow
from perdure.flow.step import step
from perdure.model.errors import Unsupported
from tests.virtual.engines import client_on, engine_on, graph, task, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


class SilentStore(VirtualStore):
    """Lacks notifications, and says so."""

    def subscribe(self, call: Any, posted: Any = None) -> Callable[[], None]:
        raise Unsupported("nobody can listen here")


@step
async def work() -> str:
    return "done"


TOLD = graph("told", [wait_for("go", "go"), task("work")])


def test_runs_and_signals_of_others_are_found_without_being_told_of() -> None:
    # scenario 49: a notification is a hint, and nothing rests on it
    async def main() -> None:
        store = SilentStore()
        async with engine_on(store, TOLD, work, poll=1) as engine:
            await asyncio.sleep(10)
            began = asyncio.get_running_loop().time()
            started = await client_on(store).start(TOLD, id="1")
            await asyncio.sleep(5)
            assert len(engine._shell.live) == 1, "it was found by looking"
            await started.signal("go")
            assert await started.result() == {"work": "done"}
            assert asyncio.get_running_loop().time() - began < 10

    run(main())


@workflow(max_duration=None)
async def child(ctx: Context) -> str:
    return await work()


@workflow(max_duration=None)
async def parent(ctx: Context) -> str:
    return await ctx.child(child)


def test_so_are_children_at_the_next_look() -> None:
    async def main() -> None:
        async with engine_on(SilentStore(), parent, child, work, poll=1) as engine:
            began = asyncio.get_running_loop().time()
            assert await engine.run(parent, id="1") == "done"
            assert asyncio.get_running_loop().time() - began <= 3

    run(main())
