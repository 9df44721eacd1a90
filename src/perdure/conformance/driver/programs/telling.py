"""Programs that are told something, or wait: signals, messages, timers, cancels, asyncio's time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from perdure.conformance.driver.programs.steps import (
    kit_note,
)
from perdure.flow.context import Context
from perdure.flow.signal import After, Channel, On, Signal
from perdure.flow.workflow import workflow
from perdure.model.errors import TimedOut


@dataclass
class Approve:
    """One answer."""

    by: str


@dataclass
class Reject:
    """The other."""

    why: str


decision: Final = Signal("kit-decision", Approve | Reject)
anything: Final = Signal("kit-anything", Any)
numbers: Final = Channel("kit-numbers", int)


@workflow(max_duration="1h")
async def kit_asked(ctx: Context) -> str:
    """A typed fact, remembered."""
    await kit_note("asked")
    match await ctx.wait(decision):
        case Approve(by):
            first = f"approved by {by}"
        case Reject(why):
            first = f"rejected: {why}"
    again = await ctx.wait(decision)
    return first if first.endswith(again.by if isinstance(again, Approve) else again.why) else "?"


@workflow(max_duration="1h")
async def kit_keyed_mailboxes(ctx: Context) -> list[str]:
    """Mailboxes apart by key."""
    await kit_note("asked")
    answers = [await ctx.wait(decision[key]) for key in ("a", "b")]
    return [a.by if isinstance(a, Approve) else a.why for a in answers]


@workflow(max_duration="1h")
async def kit_any_value(ctx: Context) -> Any:
    """Whatever is sent."""
    return await ctx.wait(anything)


@workflow(max_duration="1h")
async def kit_messages(ctx: Context, count: int) -> list[int]:
    """Messages, each once, in order."""
    await kit_note("ready")
    return [await ctx.receive(numbers) for _ in range(count)]


@workflow(max_duration="1h")
async def kit_timed_wait(ctx: Context, seconds: float) -> str:
    """A wait with an end."""
    try:
        verdict = await ctx.wait(decision, timeout=seconds)
    except TimedOut:
        return "expired"
    return verdict.by if isinstance(verdict, Approve) else verdict.why


@workflow(max_duration="1h")
async def kit_selected(ctx: Context, seconds: float) -> str:
    """Whatever comes first."""
    await kit_note("ready")
    return await ctx.select(
        On(decision, lambda verdict: type(verdict).__name__),
        On(numbers, lambda number: f"number {number}"),
        After(seconds, lambda: "time"),
    )


@workflow(max_duration="1h")
async def kit_slept(ctx: Context, seconds: float) -> bool:
    """A sleep takes at least its time."""
    began = ctx.now()
    await ctx.sleep(seconds)
    return (ctx.now() - began).total_seconds() >= seconds


@workflow(max_duration="1h")
async def kit_asyncio(ctx: Context) -> list[str]:
    """Plain asyncio, in the order of its own times."""
    said: list[str] = []

    async def say(text: str, after: float) -> None:
        await asyncio.sleep(after)
        said.append(text)

    async with asyncio.TaskGroup() as group:
        group.create_task(say("second", 0.03))
        group.create_task(say("first", 0.01))
    try:
        await asyncio.wait_for(asyncio.Event().wait(), 0.01)
    except TimeoutError:
        said.append("third")
    return said


@workflow(max_duration="1h")
async def kit_cleaning(ctx: Context) -> str:
    """Cleans up when it is canceled, and returns as if nothing were."""
    try:
        await kit_note("begun")
        await ctx.wait(decision)
    except asyncio.CancelledError:
        await kit_note("cleaned")
    return "as if nothing were"


@workflow(max_duration=0.05)
async def kit_short(ctx: Context) -> None:
    """Has less time than it takes."""
    await ctx.sleep("1h")
