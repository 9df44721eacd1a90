"""Documents to rehearse."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from perdure.graph.definition import Graph


def task(id: str, step: str | None = None, **rest: Any) -> dict[str, Any]:
    return {"id": id, "type": "TASK", "spec": {"step": step or id, "input": "{{input}}"}, **rest}


def http(id: str, **rest: Any) -> dict[str, Any]:
    spec = {"method": "POST", "url": "https://shop.test/pay", "json": {"sum": "{{input.sum}}"}}
    return {"id": id, "type": "HTTP", "spec": spec, **rest}


def wait_for(id: str, signal: str, **spec: Any) -> dict[str, Any]:
    return {"id": id, "type": "WAIT_FOR_SIGNAL", "spec": {"signal": signal, **spec}}


def chain(*nodes: dict[str, Any], **top: Any) -> Graph:
    """The nodes one after another."""
    edges = [{"from": a["id"], "to": b["id"]} for a, b in pairwise(nodes)]
    return Graph.load({"name": "chain", "nodes": list(nodes), "edges": edges, **top})


#: fetch → route → (review →) ship
ORDER = Graph.load(
    {
        "name": "order",
        "nodes": [
            task("fetch", "load", retry={"attempts": 3, "initial": "10s"}),
            {"id": "route", "type": "SWITCH"},
            wait_for("review", "reviewed", timeout="3d"),
            task("ship"),
        ],
        "edges": [
            {"from": "fetch", "to": "route"},
            {"from": "route", "to": "review", "condition": "{{tasks.fetch.output.total > 500}}"},
            {"from": "route", "to": "ship", "default": True},
            {"from": "review", "to": "ship"},
        ],
        "output": {"tracking": "{{tasks.ship.output}}"},
    }
)
LARGE = {"steps": {"fetch": {"total": 900}, "ship": "T1"}}
SMALL = {"steps": {"fetch": {"total": 9}, "ship": "T1"}}
