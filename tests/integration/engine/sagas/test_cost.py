"""What a step of a saga costs the engine, counted in function calls: the same on every machine."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from perdure import Engine, Saga, SagaContext
from tests.virtual.loop import run


async def bare(ctx: SagaContext[None]) -> None: ...


def line(steps: int) -> Saga[None, Any]:
    saga = Saga(f"line-{steps}", None)
    for n in range(steps):
        saga = saga.step(f"s{n}", bare)
    return saga


async def calls(engine: Engine, saga: Saga[None, Any]) -> int:
    """Calls of Python functions while a run of it is made."""
    count = 0

    def counted(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        await engine.run(saga)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.rule("S-31")
def test_a_step_in_memory_costs_some_dozens_of_calls_however_long_its_saga_is() -> None:
    """A call takes a twentieth of a microsecond: with the feed on and nobody listening, a step is
    a matter of microseconds. Nothing of it may grow with the steps that were before."""

    async def main() -> None:
        sagas = {steps: line(steps) for steps in (20, 120, 520, 620)}
        async with Engine("memory:", list(sagas.values())) as engine:
            took = {}
            for steps, saga in sagas.items():
                await engine.run(saga)  # what is made once is made
                took[steps] = await calls(engine, saga)
        early, late = (took[120] - took[20]) / 100, (took[620] - took[520]) / 100
        assert early < 44
        assert late < early + 1

    run(main())
