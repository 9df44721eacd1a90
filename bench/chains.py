"""Graphs in one line, and the steps they call: what most workloads run."""

from __future__ import annotations

import asyncio
from typing import Any

from perdure import Graph, step

#: Nodes of a chain, unless a workload says otherwise.
NODES = 10


@step(name="nothing")
async def nothing() -> None:
    """The smallest step."""


@step(name="add-one")
async def add_one(n: int) -> dict[str, int]:
    """A step with an input and an output."""
    return {"n": n + 1}


@step(name="wait")
async def wait(seconds: float) -> None:
    """A step that takes as long as it is told."""
    await asyncio.sleep(seconds)


def plain(nodes: int = NODES) -> Graph:
    """Steps without input or output, one after another."""
    return line("plain", [node(at, "nothing", None) for at in range(nodes)])


def reading(nodes: int = NODES) -> Graph:
    """Every node reads the output of the one before it, the first one the run's input."""
    inputs = ["{{input.n}}", *(f"{{{{tasks.n{at}.output.n}}}}" for at in range(nodes - 1))]
    members = [node(at, "add-one", {"n": text}) for at, text in enumerate(inputs)]
    return line("reading", members)


def node(at: int, name: str, given: dict[str, Any] | None) -> dict[str, Any]:
    """The node `n<at>`, calling a step."""
    spec: dict[str, Any] = {"step": name}
    if given is not None:
        spec["input"] = given
    return {"id": f"n{at}", "type": "TASK", "spec": spec}


def line(name: str, nodes: list[dict[str, Any]]) -> Graph:
    """A graph of these nodes, one after another."""
    edges = [{"from": f"n{at}", "to": f"n{at + 1}"} for at in range(len(nodes) - 1)]
    return Graph.load({"name": name, "nodes": nodes, "edges": edges})
