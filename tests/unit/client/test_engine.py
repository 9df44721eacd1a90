"""Engine: when it works, what it serves, and that leaving it leaves nothing open."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.flow.step import step
from perdure.model.errors import PerdureError, StoreError
from tests.virtual.engines import engine_on, graph, task
from tests.virtual.loop import run
from tests.virtual.stores import VirtualStore


@step
async def work() -> str:
    return "done"


ONE = graph("one", [task("a", "work")])
OTHER = graph("other", [task("a", "work")])


def test_an_engine_starts_and_takes_nothing_before_it_is_entered() -> None:
    # A run of a worker that nobody registered is everybody's to take over.
    async def main() -> None:
        store = VirtualStore()
        engine = engine_on(store, ONE, work)
        with pytest.raises(PerdureError, match="async with"):
            await engine.start(ONE, id="1")
        with pytest.raises(PerdureError, match="async with"):
            await engine.resume()
        async with engine:
            assert await engine.run(ONE, id="1") == {"a": "done"}

    run(main())


def test_a_definition_is_served_only_once_the_store_has_it() -> None:
    class Away(VirtualStore):
        away = False

        async def define(self, definition: Any) -> None:
            if self.away:
                raise StoreError("the disk is away")
            await super().define(definition)

    async def main() -> None:
        store = Away()
        async with engine_on(store, ONE, work) as engine:
            store.away = True
            with pytest.raises(StoreError, match="away"):
                await engine.start(OTHER, id="1")
            store.away = False
            assert await engine.run(OTHER, id="1") == {"a": "done"}
        assert (await store.definition(OTHER.hash)).name == "other"

    run(main())


def test_the_store_is_closed_whatever_goes_wrong_in_closing_the_engine() -> None:
    class Broken(VirtualStore):
        closed = 0

        async def unregister(self, worker: str) -> None:
            raise RuntimeError("a bug of the store")

        async def close(self) -> None:
            self.closed += 1

    async def main() -> None:
        store = Broken()
        with pytest.raises(RuntimeError, match="a bug"):
            async with engine_on(store, ONE, work):
                pass
        assert store.closed == 1

    run(main())
