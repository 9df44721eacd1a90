"""The history of a saga whose steps noted something can be read."""

from __future__ import annotations

from perdure import Engine, Saga, SagaContext
from tests.virtual.loop import run


def test_what_a_step_noted_is_in_the_history() -> None:
    async def main() -> None:
        async def reserve(ctx: SagaContext[str]) -> str:
            ctx.set("shelf", {"row": 4})
            return "res"

        saga = Saga("noting", str).step("reserve", reserve)
        async with Engine("memory:", [saga]) as engine:
            started = await engine.start(saga, "teapot")
            await started.result()
            records = [record async for record in started.history()]
        noted = [record["metadata"] for record in records if record["do"] == "CompleteTask"]
        assert noted == [{"shelf": {"row": 4}}]

    run(main())
