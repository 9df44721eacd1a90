"""Engines in virtual time, and short ways to write graph documents."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest import mock

import pytest

from perdure.client.client import Client
from perdure.client.engine import Engine
from perdure.graph.definition import Graph
from perdure.stores.port import Store
from tests.virtual.loop import VirtualClock


def engine_on(store: Store, *things: Any, clock: Any = VirtualClock, **options: Any) -> Engine:
    """An engine whose clock is the loop's, or the one that `clock()` makes."""
    with mock.patch("perdure.client.client.SystemClock", clock):
        return Engine(store, things, **options)


def client_on(store: Store) -> Client:
    """A client whose clock is the loop's."""
    with mock.patch("perdure.client.client.SystemClock", VirtualClock):
        return Client(store)


@asynccontextmanager
async def killed(store: Any, *things: Any, **options: Any) -> AsyncIterator[Engine]:
    """An engine that dies at the end as a process does: nothing is written, nobody is told."""
    engine = engine_on(store, *things, **options)
    await engine.__aenter__()
    try:
        yield engine
    finally:
        await kill(engine)
        store.crash(engine._shell.worker)


async def kill(engine: Engine) -> None:
    """Let the engine be dead, as if its process had been killed. The store has to notice."""
    shell = engine._shell
    shell.stopping = True
    await shell.watchdog.close()
    await shell.forget_all()


def lasting_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases of a year: an engine that stays open for months beats seldom enough to be tested."""
    for module in (
        "perdure.engine.worker.beats",
        "perdure.engine.worker.shell",
        "perdure.stores.memory.store",
    ):
        monkeypatch.setattr(f"{module}.LEASE", 365 * 86_400 * 1_000_000)
    monkeypatch.setattr("perdure.engine.worker.retention.EVERY", 86_400.0)


def task(id: str, step: str | None = None, input: Any = None, **rest: Any) -> dict[str, Any]:
    """A TASK node calling the step of its own name, or the one named."""
    spec: dict[str, Any] = {"step": step or id}
    if input is not None:
        spec["input"] = input
    return {"id": id, "type": "TASK", "spec": spec, **rest}


def wait(id: str, duration: Any) -> dict[str, Any]:
    """A WAIT node."""
    return {"id": id, "type": "WAIT", "spec": {"duration": duration}}


def wait_for(id: str, signal: str, timeout: Any = None) -> dict[str, Any]:
    """A WAIT_FOR_SIGNAL node."""
    spec = {"signal": signal} if timeout is None else {"signal": signal, "timeout": timeout}
    return {"id": id, "type": "WAIT_FOR_SIGNAL", "spec": spec}


def node(id: str, type: str) -> dict[str, Any]:
    """A control node."""
    return {"id": id, "type": type}


def graph(
    name: str,
    nodes: Sequence[dict[str, Any]],
    edges: Sequence[str | dict[str, Any]] | None = None,
    **top: Any,
) -> Graph:
    """A graph of these nodes. Edges are "a b" or whole; without any, one node follows another."""
    if edges is None:
        edges = [f"{a['id']} {b['id']}" for a, b in itertools.pairwise(nodes)]
    full = [
        dict(zip(("from", "to"), edge.split(), strict=True)) if isinstance(edge, str) else edge
        for edge in edges
    ]
    return Graph.load({"name": name, "nodes": list(nodes), "edges": full, **top})
