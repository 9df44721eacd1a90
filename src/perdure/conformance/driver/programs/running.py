"""Programs of steps: one after another, together, again; how they fail, what they give and see."""

from __future__ import annotations

import asyncio
from typing import Any

from perdure.conformance.driver.programs.steps import (
    Declined,
    kit_at_once,
    kit_declined,
    kit_echo,
    kit_held,
    kit_keyed,
    kit_never,
    kit_note,
    kit_permanent,
    kit_plain,
    kit_shaky,
    kit_slow,
)
from perdure.flow.context import Context
from perdure.flow.workflow import workflow
from perdure.model.errors import StepFailed, TimedOut


@workflow(max_duration="1h")
async def kit_steps(ctx: Context, names: list[str]) -> list[str]:
    """One step after another."""
    return [await (kit_plain if name.startswith("plain") else kit_note)(name) for name in names]


@workflow(max_duration="1h")
async def kit_together(ctx: Context, names: list[str]) -> list[str]:
    """Steps under way together; results in the order of the calls."""
    return list(await asyncio.gather(*(kit_held(name) for name in names)))


@workflow(max_duration="1h")
async def kit_mapped(ctx: Context, count: int) -> list[int]:
    """Many steps, few at a time."""
    return await ctx.map(kit_shaky, [0] * count, concurrency=3)


@workflow(max_duration="1h")
async def kit_retried(ctx: Context, fails: int) -> str:
    """A step that fails for a while, or for good."""
    try:
        return f"attempt {await kit_shaky(fails)}"
    except StepFailed as failed:
        return f"{failed.kind}: {failed.message} ({failed.step}, attempt {failed.attempt})"


@workflow(max_duration="1h")
async def kit_same_key(ctx: Context, fails: int) -> None:
    """The key of one call."""
    await kit_keyed(fails)


@workflow(max_duration="1h")
async def kit_hopeless(ctx: Context, which: str) -> str:
    """Failures that are not repeated."""
    try:
        await (kit_permanent if which == "permanent" else kit_never)()
    except StepFailed as failed:
        return failed.kind
    return "not failed"


@workflow(max_duration="1h")
async def kit_policy_of_the_call(ctx: Context) -> str:
    """A call under a policy of its own."""
    try:
        await kit_shaky.with_options(retry=1)(9)
    except StepFailed as failed:
        return f"attempt {failed.attempt}"
    return "not failed"


@workflow(max_duration="1h")
async def kit_immediately(ctx: Context) -> int:
    """Retries without a delay."""
    return await kit_at_once()


@workflow(max_duration="1h")
async def kit_out_of_time(ctx: Context) -> str:
    """A step over its time."""
    try:
        await kit_slow()
    except TimedOut:
        return "timed out"
    return "not"


@workflow(max_duration="1h")
async def kit_declining(ctx: Context, catch: bool) -> str:
    """A failure with a class of its own, caught here or outside."""
    if not catch:
        await kit_declined()
    try:
        await kit_declined()
    except Declined as failed:
        return f"{failed.message} {failed.details}"
    return "not"


@workflow(max_duration="1h")
async def kit_raising(ctx: Context) -> None:
    """Code that fails by itself."""
    raise LookupError("nothing there")


@workflow(max_duration="1h")
async def kit_seen(ctx: Context) -> list[Any]:
    """What the context says."""
    return [ctx.id, ctx.name, dict(ctx.metadata), ctx.canceled, str(ctx.now().tzinfo)]


@workflow(max_duration="1h")
async def kit_values(ctx: Context, value: Any) -> Any:
    """A value through a step and out again."""
    return await kit_echo(value)
