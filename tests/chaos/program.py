"""The worker that is killed: starts or joins a batch of runs on a SQLite file and ends with them.

It ends in order at SIGTERM, without waiting for what is executing. Every execution of a step is
first written to a log that survives the process. Run as `python -m tests.chaos.program` with a
Launch as JSON; says "up" on standard output once its engine is open.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from perdure import Engine, Failure, Graph, Retry, current_step, step

LARGE: Final = 5000
#: The exit code of a process that ended in order at SIGTERM.
STOPPED: Final = 43


class Launch(msgspec.Struct):
    """What one process is told. `runs`: (graph, run id, number) to start or join."""

    number: int
    db: str
    log: str
    url: str
    sync: str
    runs: list[tuple[str, str, int]]


class Execution(msgspec.Struct, frozen=True):
    """One line of the log. `attempt` from 0."""

    launch: int
    run: str
    node: str
    attempt: int
    key: str


LOG: list[int] = []
LAUNCH: list[int] = []


def note() -> None:
    """Write down, durably, that this step is being executed."""
    now = current_step()
    line = Execution(
        LAUNCH[0], f"{now.workflow}/{now.run_id}", now.node, now.attempt - 1, now.idempotency_key
    )
    os.write(LOG[0], msgspec.json.encode(line) + b"\n")
    os.fsync(LOG[0])


@step
async def double(n: int) -> int:
    note()
    await asyncio.sleep(n % 7 / 100)
    return n * 2


@step
def thread(n: int) -> int:
    note()
    time.sleep(n % 5 / 100)
    return n + 1


@step
async def quick(n: int) -> int:
    note()
    return n + 1


@step
async def large(n: int) -> list[int]:
    note()
    return [n] * LARGE


@step(retry=Retry(3, initial=0.02))
async def flaky(n: int) -> int:
    note()
    await asyncio.sleep(0.01)
    if current_step().attempt <= n % 3:
        raise Failure("not yet")
    return n


def task(id: str, name: str, n: str) -> dict[str, Any]:
    return {"id": id, "type": "TASK", "spec": {"step": name, "input": {"n": n}}}


def edge(text: str) -> dict[str, Any]:
    return dict(zip(("from", "to"), text.split(), strict=True))


def mixed(url: str) -> Graph:
    """HTTP, a fork of steps of both kinds, a switch."""
    return Graph.load({
        "name": "mixed",
        "nodes": [
            task("first", "double", "{{input.n}}"),
            {"id": "fork", "type": "FORK"},
            task("b", "thread", "{{tasks.first.output}}"),
            {"id": "call", "type": "HTTP", "spec": {
                "method": "POST", "url": f"{url}/{{{{system.run_id}}}}",
                "headers": {"X-Launch": "{{secrets.launch}}"}, "json": {"n": "{{input.n}}"},
            }, "retry": {"attempts": 2, "initial": 0.05}},
            task("c", "flaky", "{{input.n}}"),
            {"id": "join", "type": "JOIN"},
            {"id": "route", "type": "SWITCH"},
            task("even", "quick", "{{tasks.b.output}}"),
            task("odd", "thread", "{{tasks.b.output}}"),
        ],
        "edges": [
            *map(edge, ["first fork", "fork b", "fork call", "fork c", "b join", "call join",
                        "c join", "join route"]),
            {"from": "route", "to": "even", "condition": "{{input.n % 2 == 0}}"},
            {"from": "route", "to": "odd", "default": True},
        ],
        "output": {
            "http": "{{tasks.call.output.body.n}}", "c": "{{tasks.c.output}}",
            "end": "{{has(tasks.even.output) ? tasks.even.output : tasks.odd.output}}",
        },
    })  # fmt: skip


def chain() -> Graph:
    """Steps in sequence, some that never wait, one with a large output."""
    names = ["quick", "double", "thread", "quick", "quick", "large"]
    nodes = [task(f"s{i}", name, f"{{{{tasks.s{i - 1}.output}}}}" if i else "{{input.n}}")
             for i, name in enumerate(names)]  # fmt: skip
    nodes.append(task("end", "quick", "{{tasks.s5.output[0]}}"))
    edges = [*(edge(f"s{i} s{i + 1}") for i in range(5)), edge("s5 end")]
    return Graph.load({"name": "chain", "nodes": nodes, "edges": edges})


def expected(name: str, n: int) -> Any:
    """What a run of this graph with this number comes to."""
    if name == "mixed":
        return {"http": n, "c": n, "end": n * 2 + 2}
    return {"end": (n + 1) * 2 + 4}


async def main(launch: Launch) -> None:
    graphs = {graph.name: graph for graph in (mixed(launch.url), chain())}
    steps = [double, thread, quick, large, flaky]
    store = f"sqlite:///{launch.db}?sync={launch.sync}"
    secrets = {"launch": f"launch-{launch.number}"}
    async with Engine(store, [*graphs.values(), *steps], secrets=secrets, grace=0) as engine:
        up()
        started = [
            await engine.start(graphs[name], {"n": n}, id=id, if_exists="join")
            for name, id, n in launch.runs
        ]
        for run in started:
            await run.result()


def up() -> None:
    """Say that the engine is open."""
    sys.stdout.write("up\n")
    sys.stdout.flush()


def launched(main: Callable[[Launch], Coroutine[Any, Any, None]]) -> None:
    """Be the process that was told what to do; ends in order at SIGTERM."""
    launch = msgspec.json.decode(sys.argv[1], type=Launch)
    LAUNCH.append(launch.number)
    LOG.append(os.open(launch.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))

    async def until_told() -> None:
        this = asyncio.current_task()
        assert this is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
        await main(launch)

    try:
        asyncio.run(until_told())
    except asyncio.CancelledError:
        sys.exit(STOPPED)


if __name__ == "__main__":
    launched(main)
