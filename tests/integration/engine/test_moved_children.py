"""A graph that waits for a run of another definition, moved to another store with that run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from perdure import Canceled, Context, Signal, workflow
from perdure.client.moving import check, import_run, saved_runs
from perdure.stores.sqlite.store import SqliteStore
from tests.virtual.engines import client_on, engine_on, graph, killed
from tests.virtual.stores import VirtualStore
from tests.virtual.threads import run

go = Signal("go", int)


@workflow(max_duration="30d")
async def patient(ctx: Context) -> int:
    return await ctx.wait(go)


waits = graph("waits", [{"id": "ask", "type": "CHILD", "spec": {"workflow": "patient", "id": "p"},
                         "timeout": "2d"}])  # fmt: skip
#: The parent may come first: it waits for its child until that has come.
ORDERS = [(("patient", "p"), ("waits", "1")), (("waits", "1"), ("patient", "p"))]


@pytest.fixture(params=["memory", "sqlite"])
def here(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "sqlite":
        return SqliteStore(tmp_path / "here.db", synchronous="normal")
    return VirtualStore()


@pytest.mark.parametrize("ends", ["completed", "canceled"])
@pytest.mark.parametrize("order", ORDERS)
def test_it_goes_on_waiting_for_that_run_where_it_was_moved_to(
    here: Any, order: tuple[tuple[str, str], ...], ends: str
) -> None:
    async def main() -> None:
        there = VirtualStore()
        async with killed(there, waits, patient) as engine:
            await engine.start(waits, id="1")
            await asyncio.sleep(60)
        await here.open()
        async with client_on(there) as old, client_on(here) as new:
            async for one in saved_runs(old, order, running=True):
                check(one)
                assert (await import_run(new, one)).outcome == "paused"
        async with engine_on(here, waits, patient) as engine:
            parent, child = engine.get(waits, "1"), engine.get(patient, "p")
            await parent.unpause()
            await asyncio.sleep(5)
            await child.unpause()
            if ends == "completed":
                await child.signal(go, 4)
                assert await parent.result() == {"ask": 4}
            else:
                await parent.cancel()
                with pytest.raises(Canceled):
                    await parent.result()
                with pytest.raises(Canceled):  # it is still its own
                    await child.result()
            found = [(info.workflow, info.id) async for info in engine.runs()]
            assert sorted(found) == [("patient", "p"), ("waits", "1")]

    run(main())
