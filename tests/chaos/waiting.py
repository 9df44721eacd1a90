"""Graphs and workflows that wait, are signalled, retried and cancelled, and what each of their runs
comes to.

A run's definition and its fate follow from its number alone.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from perdure import (
    Channel,
    Context,
    Failure,
    Graph,
    Permanent,
    Retry,
    Workflow,
    current_step,
    step,
    workflow,
)
from tests.virtual.engines import graph, node, task, wait, wait_for


class Execution(msgspec.Struct, frozen=True):
    """One line of the log: `worker` began `attempt` (from 0) of the task `key`."""

    launch: int
    worker: str
    run: str
    node: str
    attempt: int
    key: str


class Log:
    """Where executions are written down, durably, before they are made."""

    def __init__(self, path: str, launch: int, worker: Callable[[], str]) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._launch = launch
        self._worker = worker

    def note(self) -> None:
        """This step is being executed."""
        now = current_step()
        run = f"{now.workflow}/{now.run_id}"
        line = Execution(
            self._launch, self._worker(), run, now.node, now.attempt - 1, now.idempotency_key
        )
        os.write(self._fd, msgspec.json.encode(line) + b"\n")
        os.fsync(self._fd)


#: The log of this process, once it works.
LOGS: Final[list[Log]] = []


@step
async def echo(value: Any, seconds: float = 0.01) -> Any:
    LOGS[0].note()
    await asyncio.sleep(seconds)
    return value


@step
def threaded(n: int) -> int:
    LOGS[0].note()
    time.sleep(n % 5 / 50)
    return n + 1


@step(retry=Retry(3, initial=0.05))
async def flaky(n: int) -> int:
    LOGS[0].note()
    if current_step().attempt <= n % 3:
        raise Failure("not yet")
    return n


@step
async def gate(ok: bool) -> str:
    LOGS[0].note()
    if not ok:
        raise Permanent("not before somebody says so")
    return "open"


STEPS: Final = (echo, threaded, flaky, gate)


def _echo(id: str, value: Any, seconds: float = 0.01) -> dict[str, Any]:
    return task(id, "echo", {"value": value, "seconds": seconds})


#: Two waits for signals of one name: the first to come is for the first of them.
HOLD: Final = graph(
    "hold",
    [_echo("a", "{{input.n}}"), node("f", "FORK"), wait("nap", "200ms"),
     task("b", "threaded", {"n": "{{input.n}}"}), wait_for("one", "go"),
     _echo("heard", "{{tasks.one.output.k}}"), task("c", "flaky", {"n": "{{input.n}}"}),
     node("j", "JOIN"), wait_for("two", "go", "1h"), _echo("end", "{{tasks.two.output.k}}")],
    ["a f", "f nap", "nap b", "f one", "one heard", "f c", "b j", "heard j", "c j", "j two",
     "two end"],
    output={"b": "{{tasks.b.output}}", "one": "{{tasks.heard.output}}",
            "two": "{{tasks.end.output}}"},
)  # fmt: skip
#: Fails until it is retried with another input.
GATED: Final = graph(
    "gated",
    [wait_for("one", "go"), task("gate", "gate", {"ok": "{{input.ok}}"}), wait("nap", "100ms"),
     wait_for("two", "go"), _echo("end", "{{tasks.two.output.k}}")],
    output={"one": "{{tasks.one.output.k}}", "two": "{{tasks.end.output}}",
            "gate": "{{tasks.gate.output}}"},
)  # fmt: skip
#: Its signal never comes.
LATE: Final = graph("late", [_echo("a", 1), wait_for("never", "never", "300ms"), _echo("b", 2)])
#: Ends only by being cancelled. Its step lasts from before a stop to after it: whoever was stopped
#: has an outcome when it goes on, and those who took the run have none yet.
STUCK: Final = graph(
    "stuck",
    [_echo("a", 1), node("f", "FORK"), _echo("long", 2, 3.5), wait_for("never", "never"),
     wait("year", "365d"), node("j", "JOIN")],
    ["a f", "f long", "f never", "f year", "long j", "never j", "year j"],
)  # fmt: skip
#: Nothing but its step moves it: while others that took the run are at the step, they record
#: nothing, and only the row by which they took it keeps the one that was stopped from recording.
LASTING: Final = graph(
    "lasting", [_echo("a", "{{input.n}}"), _echo("long", "{{tasks.a.output}}", 3.5), _echo("b", 2)],
    output={"long": "{{tasks.long.output}}"},
)  # fmt: skip
Input = dict[str, Any]
GO: Final = Channel("go", dict[str, int])


@workflow(max_duration="1d")
async def hold_code(ctx: Context, given: Input) -> dict[str, Any]:
    """The same as code: steps side by side, a timer, two messages."""
    await echo(given["n"])

    async def nap() -> int:
        await ctx.sleep("200ms")
        return await threaded(given["n"])

    async def hear() -> Any:
        return await echo((await ctx.receive(GO))["k"])

    b, one, _ = await asyncio.gather(nap(), hear(), flaky(given["n"]))
    async with asyncio.timeout(3600):
        two = await ctx.receive(GO)
    return {"b": b, "one": one, "two": await echo(two["k"])}


@workflow(max_duration="1d")
async def gated_code(ctx: Context, given: Input) -> dict[str, Any]:
    """Fails until it is retried with another input."""
    one = await ctx.receive(GO)
    opened = await gate(given["ok"])
    await asyncio.sleep(0.1)
    two = await ctx.receive(GO)
    return {"one": one["k"], "two": await echo(two["k"]), "gate": opened}


@workflow(max_duration="1d")
async def stuck_code(ctx: Context, given: Input) -> None:
    """Ends only by being cancelled, and takes back what it did."""
    async with ctx.saga() as saga:
        await saga.run(echo, 1, undo=threaded)
        await asyncio.gather(echo(2, 3.5), ctx.sleep("365d"))


def _child(node_id: str, workflow: str, **spec: Any) -> dict[str, Any]:
    return {"id": node_id, "type": "CHILD", "spec": {"workflow": workflow, **spec}}


#: What the others ask for; so many of them share one run of it.
LEAF: Final = graph(
    "leaf", [_echo("a", "{{input.n}}"), wait("nap", "100ms"), _echo("b", "{{tasks.a.output}}")],
    output={"n": "{{tasks.b.output}}"},
)  # fmt: skip
SHARED: Final = 3 * 16


@workflow(max_duration="1d")
async def branch(ctx: Context, n: int) -> int:
    """A workflow that a graph asks for, and that asks for one."""
    await echo(n)
    leaf: dict[str, int] = await ctx.child(LEAF, {"n": n})
    return leaf["n"]


FAMILY: Final = graph(
    "family",
    [_echo("a", 1), node("f", "FORK"), _child("branch", "branch", input="{{input.n}}"),
     _child("leaf", "leaf", id=f"shared-{{{{input.n / {SHARED}}}}}", input={"n": 0}),
     node("j", "JOIN"), _echo("end", "{{tasks.branch.output}}")],
    ["a f", "f branch", "f leaf", "branch j", "leaf j", "j end"],
    output={"branch": "{{tasks.end.output}}"},
)  # fmt: skip
#: It ends with the one that asked for it.
STUCK_FAMILY: Final = graph("stuck-family", [_child("ask", "stuck-code", input="{{input}}")])


@workflow(max_duration="1d")
async def family_code(ctx: Context, given: Input) -> dict[str, Any]:
    """The same as code."""
    n = given["n"]
    await ctx.spawn(LEAF, {"n": n}, id=f"spawned-{n}")
    found, _ = await asyncio.gather(
        ctx.child(branch, n), ctx.child(LEAF, {"n": 0}, id=f"shared-{n // SHARED}")
    )
    return {"branch": await echo(found)}


GRAPHS: Final = (
    HOLD, GATED, LATE, STUCK, LASTING, hold_code, gated_code, stuck_code,
    LEAF, branch, FAMILY, STUCK_FAMILY, family_code,
)  # fmt: skip
_ORDER: Final = (
    HOLD, hold_code, FAMILY, GATED, LASTING, gated_code, family_code, LATE, STUCK, stuck_code,
    STUCK_FAMILY, FAMILY, hold_code, LASTING, gated_code, HOLD,
)  # fmt: skip


def graph_of(n: int) -> Graph | Workflow[Any, Any]:
    """The graph of this run, or the workflow."""
    return _ORDER[n % len(_ORDER)]


def expected(n: int) -> tuple[str, Any]:
    """The status in which the run ends, and its output."""
    name = graph_of(n).name.removesuffix("-code")
    if name == "hold":
        return "completed", {"b": n + 1, "one": 1, "two": 2}
    if name == "gated":
        return "completed", {"one": 1, "two": 2, "gate": "open"}
    if name == "lasting":
        return "completed", {"long": n}
    if name == "family":
        return "completed", {"branch": n}
    return ("failed", None) if name == "late" else ("canceled", None)


def children_of(n: int) -> dict[tuple[str, str], str]:
    """The runs that run n asks for, by workflow and id, with the status in which each ends."""
    made = graph_of(n).name
    if made == "stuck-family":
        return {("stuck-code", f"stuck-family/{n}/ask"): "canceled"}
    if not made.startswith("family"):
        return {}
    asked = {("branch", f"{made}/{n}/branch"), ("leaf", f"branch/{made}/{n}/branch/leaf")}
    asked |= {("leaf", f"shared-{n // SHARED}")}
    asked |= {("leaf", f"spawned-{n}")} if made == "family-code" else set()
    return dict.fromkeys(asked, "completed")
