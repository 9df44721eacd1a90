"""Types that must hold at both ends of a workflow, and mistakes that must be found."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_type

import perdure
from perdure import (
    AlreadyStarted,
    Channel,
    Client,
    Context,
    Engine,
    Failure,
    Graph,
    Run,
    RunInfo,
    Signal,
    Workflow,
    workflow,
)


@dataclass
class Approve:
    by: str


@dataclass
class Reject:
    why: str


decision = Signal("decision", Approve | Reject)
numbers = Channel("numbers", int)


@workflow(max_duration="1h")
async def decide(ctx: Context, limit: int) -> Approve | None:
    match await ctx.wait(decision["a"], timeout="1d"):
        case Approve() as approved:
            return approved
        case Reject():
            return None


@workflow(max_duration=None, name="quiet", version="2", retention="7d", aliases=["silent"])
async def quiet(ctx: Context) -> None:
    assert_type(ctx.now(), datetime)
    assert_type(ctx.metadata, Mapping[str, str])
    assert_type(await ctx.receive(numbers), int)


@workflow(max_duration="1h")
async def collected(ctx: Context) -> list[str]:
    whole = await ctx.map(ctx.sleep, [1, 2])
    assert_type(whole, list[None])
    names = await ctx.map(named, [1, 2], on_failure="collect")
    assert_type(names, list[str | Failure])
    for one in names:
        assert one.message  # E
    return [one if isinstance(one, str) else one.message for one in names]


async def named(number: int) -> str:
    return str(number)


@workflow  # E
async def unsaid(ctx: Context) -> None: ...


@workflow(max_duration="1h")  # E
async def too_many(ctx: Context, a: int, b: int) -> None: ...


async def outside(client: Client, graph: Graph) -> None:
    assert_type(decide, Workflow[int, Approve | None])
    assert_type(quiet, Workflow[None, None])
    run = await client.start(decide, 3, id="1", metadata={"a": "b"}, if_exists="join", delay="5s")
    assert_type(run, Run[Approve | None])
    assert_type(await run.result(timeout=3), Approve | None)
    assert_type(await client.run(decide, 3, idempotency_key="k", timeout="1m"), Approve | None)
    assert_type(client.get("decide", "1"), Run[Any])
    assert_type(await client.run(graph, {"a": 1}), dict[str, Any])
    assert_type(await client.run(graph), dict[str, Any])
    assert_type(client.runs(workflow=decide, status=["failed", "running"]), AsyncIterator[RunInfo])
    assert_type((await run.describe()).failure, Failure | None)
    await run.signal(decision, Approve("ann"))
    await run.signal(decision["a"], Reject("no"), dedupe_key="x")
    await run.signal(numbers, 3)
    await run.signal("decision", {"by": "ann"})
    await client.start("decide", 3)
    await client.start(quiet)


async def mistakes(client: Client, graph: Graph) -> None:
    run = client.get(decide, "1")
    await run.signal(decision, "yes")  # E
    await run.signal(decision)  # E
    await run.signal(numbers, "3")  # E
    await client.start(decide, 3, if_exists="maybe")  # E
    await client.start(decide, 3, colour="red")  # E
    await client.start(quiet, 3)  # E
    await client.run(decide, None)  # E
    await client.run(graph, 5)  # E
    client.start(quiet)  # E
    perdure.nothing_of_this_name()  # E
    wrong: Run[str] = run  # E
    base: Run[object] = run
    del wrong, base


async def handles(engine: Engine) -> str:
    try:
        run = await engine.start(decide, 1, id="1")
    except AlreadyStarted as error:
        run = error.run
    return await run.status()
