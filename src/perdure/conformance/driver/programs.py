"""The programs that the kit's scenarios run: small workflows and steps, each for one promise."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from perdure.conformance.driver.effects import did, gate_of
from perdure.flow.context import Context
from perdure.flow.signal import After, Channel, On, Signal
from perdure.flow.step import Step, step
from perdure.flow.workflow import Workflow, workflow
from perdure.model.errors import Failure, Permanent, StepFailed, TimedOut
from perdure.model.policy import Retry
from perdure.model.step_context import current_step


@dataclass
class Approve:
    """One answer."""

    by: str


@dataclass
class Reject:
    """The other."""

    why: str


class Declined(Failure, kind="kit-declined", permanent=True):
    """A failure that is to come back as itself."""


decision: Final = Signal("kit-decision", Approve | Reject)
anything: Final = Signal("kit-anything", Any)
numbers: Final = Channel("kit-numbers", int)

_QUICK: Final = Retry(4, initial=0.005, factor=1)


# ------------------------------------------------------------------ steps


@step
async def kit_note(text: str) -> str:
    """Does and returns what it is told."""
    did(text)
    return text


@step
def kit_plain(text: str) -> str:
    """A plain function, in a thread."""
    did(text)
    return text


@step(retry=_QUICK)
async def kit_shaky(fails: int) -> int:
    """Fails that often, then returns the attempt."""
    attempt = current_step().attempt
    did(f"attempt {attempt}")
    if attempt <= fails:
        raise ValueError("shaky")
    return attempt


@step(retry=_QUICK)
async def kit_keyed(fails: int) -> None:
    """Tells the key that a service would see."""
    did(current_step().idempotency_key)
    if current_step().attempt <= fails:
        raise ValueError("again")


@step(retry=_QUICK)
async def kit_permanent() -> None:
    """Fails for good at its first attempt."""
    did("permanent")
    raise Permanent(ValueError("hopeless"))


@step(retry=Retry(4, initial=0.005, never_on=KeyError))
async def kit_never() -> None:
    """Fails with what its policy does not repeat."""
    did("never")
    raise KeyError("no")


@step
async def kit_declined() -> None:
    """Fails as its own class."""
    did("declined")
    raise Declined("no funds", details={"code": 51})


@step(timeout=None)
async def kit_held(gate: str) -> str:
    """Takes as long as its gate is closed."""
    did(f"began {gate}")
    await gate_of(gate)
    did(f"ended {gate}")
    return gate


@step(timeout=0.02)
async def kit_slow() -> None:
    """Takes longer than it may."""
    did("slow")
    await asyncio.sleep(30)


@step(retry=Retry(3, initial=0))
async def kit_at_once() -> int:
    """Is to be repeated without a delay."""
    did(f"attempt {current_step().attempt}")
    if current_step().attempt < 3:
        raise ValueError("again")
    return current_step().attempt


@step
async def kit_echo(value: Any) -> Any:
    """Gives back what it was given."""
    return value


# ------------------------------------------------------------------ workflows


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


@workflow(max_duration="1h")
async def kit_undone(ctx: Context, fail: bool) -> str:
    """Undoes what it did, last first, when it fails."""
    async with ctx.saga() as saga:
        await saga.run(kit_note, "charged", undo=kit_undo)
        await saga.run(kit_note, "reserved", undo=kit_undo)
        if fail:
            await kit_declined()
    return "done"


@step
async def kit_undo(what: str) -> None:
    """Takes something back."""
    did(f"undone {what}")


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
async def kit_seen(ctx: Context) -> list[Any]:
    """What the context says."""
    return [ctx.id, ctx.name, dict(ctx.metadata), ctx.canceled, str(ctx.now().tzinfo)]


@workflow(max_duration="1h")
async def kit_values(ctx: Context, value: Any) -> Any:
    """A value through a step and out again."""
    return await kit_echo(value)


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


#: All that a driver is given to execute.
PROGRAMS: Final[tuple[Any, ...]] = tuple(
    thing for thing in list(globals().values()) if isinstance(thing, (Step, Workflow))
)
