"""Notes of saga steps: recorded as they were when their attempt completed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure.kernel.actions import CompleteTask
from perdure.saga.builder import Saga
from perdure.saga.context import SagaContext
from tests.virtual.engines import engine_on
from tests.virtual.loop import run
from tests.virtual.stores import LateStore, VirtualStore


@pytest.mark.rule("SX-15")
@pytest.mark.parametrize("kind", [VirtualStore, LateStore])
def test_what_is_noted_after_an_attempt_has_completed_is_not_recorded(
    kind: type[VirtualStore],
) -> None:
    """Its row may still wait to be written then: other rows of the run are under way."""
    seen: list[Any] = []

    async def noting(ctx: SagaContext[str]) -> None:
        ctx.set("in time", ctx.node)
        asyncio.get_running_loop().call_soon(ctx.set, f"late of {ctx.node}", 1)

    async def after(ctx: SagaContext[str]) -> None:
        await asyncio.sleep(1)
        seen.append([ctx.get(key) for key in ("in time", "late of a", "late of b", "late of c")])

    saga = Saga("notes", str)
    for name in "abc":
        saga = saga.step(name, noting, depends_on=[])
    saga = saga.step("after", after, depends_on=["a", "b", "c"])

    async def main() -> None:
        store = kind()
        async with engine_on(store, saga) as engine:
            await engine.run(saga, "x", id="1")
        recorded = [
            action.metadata
            for transition in await store.journal("notes", "1")
            for action in transition.actions
            if type(action) is CompleteTask and action.metadata is not None
        ]
        assert [list(notes) for notes in recorded] == [["in time"]] * 3
        assert seen[0][1:] == [None, None, None]

    run(main())
