"""Programs that outlast something: a crash, a failure that is undone, their parent, themselves."""

from __future__ import annotations

from perdure.conformance.driver.programs.running import kit_declining, kit_steps
from perdure.conformance.driver.programs.steps import (
    Declined,
    kit_declined,
    kit_held,
    kit_note,
    kit_undo,
)
from perdure.conformance.driver.programs.telling import kit_asked
from perdure.flow.context import Context
from perdure.flow.workflow import workflow


@workflow(max_duration="1h")
async def kit_undone(ctx: Context, fail: bool) -> str:
    """Undoes what it did, last first, when it fails."""
    async with ctx.saga() as saga:
        await saga.run(kit_note, "charged", undo=kit_undo)
        await saga.run(kit_note, "reserved", undo=kit_undo)
        if fail:
            await kit_declined()
    return "done"


@workflow(max_duration="1h")
async def kit_held_once(ctx: Context, gate: str) -> str:
    """Something before, something long, something after."""
    await kit_note("before")
    held = await kit_held(gate)
    await kit_note("after")
    return held


@workflow(max_duration="1h")
async def kit_by_chance(ctx: Context) -> list[str]:
    """A time, an id, a number: told to a step, and given in the end."""
    drawn = [ctx.now().isoformat(), str(ctx.uuid()), str(ctx.random.random())]
    await kit_note(" ".join(drawn))
    await kit_held("gate")
    return drawn


@workflow(max_duration="1h")
async def kit_counted(ctx: Context, count: int) -> int:
    """Begins anew until it has counted down."""
    await kit_note(f"count {count}")
    if count:
        ctx.continue_as_new(count - 1)
    return count


@workflow(max_duration="1h")
async def kit_parent(ctx: Context, fail: bool) -> str:
    """Waits for another run."""
    try:
        if fail:
            return await ctx.child(kit_declining, False)
        said = await ctx.child(kit_steps, ["child"])
        return ",".join(said)
    except Declined as failed:
        return failed.message


@workflow(max_duration="1h")
async def kit_waiting_parent(ctx: Context, id: str) -> str:
    """Waits for a run that waits."""
    await kit_note("begun")
    return await ctx.child(kit_asked, id=id)


@workflow(max_duration="1h")
async def kit_spawning(ctx: Context, id: str) -> str:
    """Starts a run that goes on by itself."""
    await ctx.spawn(kit_asked, id=id)
    return await ctx.spawn(kit_asked, id=id)
