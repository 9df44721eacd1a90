"""Runs that are watched in tests: a saga, a graph and workflows, and how they are seen."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from perdure import (
    Context,
    Failure,
    Retry,
    Saga,
    SagaContext,
    step,
    workflow,
)
from perdure.client.engine import Engine
from perdure.feed import (
    LiveView,
    RunView,
)
from perdure.model.step_context import current_step
from tests.virtual.engines import graph, node, task, wait_for
from tests.virtual.loop import BEGIN, settle


class Declined(Failure, kind="live-declined"):
    """No."""


@step(retry=Retry(2, initial=5))
async def flaky(fails: int = 0) -> str:
    await asyncio.sleep(1)
    if current_step().attempt <= fails:
        raise Declined("timeout")
    return "done"


@step
async def slow() -> str:
    await asyncio.sleep(10)
    return "done"


async def quick(ctx: SagaContext[dict[str, Any]]) -> None:
    await asyncio.sleep(1)


async def charge(ctx: SagaContext[dict[str, Any]]) -> None:
    await asyncio.sleep(2)
    if ctx.attempt <= ctx.payload.get("charge", 0):
        raise Declined("timeout")


async def ship(ctx: SagaContext[dict[str, Any]]) -> None:
    if ctx.payload.get("ship"):
        raise Declined("no carrier")


async def undo(ctx: SagaContext[dict[str, Any]]) -> None:
    await asyncio.sleep(3)
    if ctx.attempt <= ctx.payload.get(ctx.node, 0):
        raise Declined("bank is closed")


checkout = (
    Saga("checkout", dict[str, Any], max_duration="1h")
    .step("reserve", quick, undo=undo, undo_retry=Retry(2, initial=20))
    .step("charge", charge, undo=undo, retry=Retry(3, initial=10))
    .step("ship", ship)
)
switch = graph(
    "switch",
    [task("flaky"), node("s", "SWITCH"), task("no", "slow"), wait_for("ok", "go", "1h")],
    ["flaky s", {"from": "s", "to": "no", "condition": "{{input.no}}"},
     {"from": "s", "to": "ok", "default": True}],
)  # fmt: skip


@workflow(max_duration="1h")
async def coded(ctx: Context, fails: int) -> None:
    await flaky(fails)
    await ctx.sleep(5)
    await flaky(0)


@step
def hush() -> str:
    return "done"


@workflow(max_duration="1h")
async def quiet(ctx: Context) -> str:
    return await hush()


def now() -> datetime:
    at = BEGIN / 1_000_000 + asyncio.get_running_loop().time()
    return datetime.fromtimestamp(at, UTC)


def live_on(engine: Engine, **options: Any) -> LiveView:
    return LiveView(engine, now=now, **options)


def states(view: RunView | dict[str, Any]) -> dict[str, str]:
    told = view.to_dict(now()) if isinstance(view, RunView) else view
    return {step["name"]: step["state"] for step in told["steps"]}


async def both(live: LiveView, engine: Engine, workflow: str, id: str = "1") -> dict[str, Any]:
    """How a run stands, by the feed and by its journal: the same."""
    await settle()
    view = live.get(workflow, id)
    assert view is not None
    told = view.to_dict(now())
    assert (await engine.get(workflow, id).view()).to_dict(now()) == told
    return told
