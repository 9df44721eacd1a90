"""Finished runs are forgotten past their retention, by an engine that is open."""

from __future__ import annotations

import asyncio

import pytest

from perdure.engine.worker.retention import purge
from perdure.flow.step import step
from perdure.model.errors import NotFound, StoreError
from tests.virtual.engines import client_on, engine_on, graph, task, wait_for
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step
async def work() -> str:
    return "done"


HOUR = graph("hour", [task("work")], retention="1h")
WAITS = graph("waits", [wait_for("ok", "go")], retention="1s")


def test_a_run_is_forgotten_when_its_retention_is_over_and_no_other_is() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, HOUR, WAITS, work) as engine:
            await engine.run(HOUR, id="old")
            await engine.start(WAITS, id="1")
            await asyncio.sleep(3000)
            await engine.run(HOUR, id="young")
            await asyncio.sleep(1000)
            with pytest.raises(NotFound):
                await engine.get(HOUR, "old").status()
            assert await engine.get(HOUR, "young").status() == "completed"
            assert await engine.get(WAITS, "1").status() == "running"
            assert await engine.run(HOUR, id="old") == {"work": "done"}, "its id is free again"

    run(main())


def test_everything_that_is_over_its_time_goes_in_batches() -> None:
    async def main() -> None:
        store = VirtualStore()
        async with engine_on(store, HOUR, work) as engine:
            for number in range(250):
                await engine.run(HOUR, id=str(number))
        await asyncio.sleep(86_400)
        sizes: list[int] = []
        real = store.purge

        async def counted(limit: int) -> int:
            sizes.append(await real(limit))
            return sizes[-1]

        store.purge = counted  # type: ignore[method-assign]
        assert await purge(store) == 250
        assert sizes == [100, 100, 50]
        async with client_on(store) as client:
            assert [info async for info in client.runs()] == []

    run(main())


def test_a_purge_that_fails_is_made_again() -> None:
    class Flaky(VirtualStore):
        tries = 0

        async def purge(self, limit: int) -> int:
            self.tries += 1
            if self.tries <= 2:
                raise [StoreError("away"), KeyError("a bug")][self.tries - 1]
            return await super().purge(limit)

    async def main() -> None:
        store = Flaky()
        async with engine_on(store, HOUR, work) as engine:
            await engine.run(HOUR, id="1")
            await asyncio.sleep(4000)
            assert [info async for info in engine.runs()] == []

    run(main())
