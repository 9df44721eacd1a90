"""Graphs to draw, histories of runs through them, and a reader of drawings."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from perdure.graph.definition import Graph

SVG = "{http://www.w3.org/2000/svg}"


def task(id: str, **rest: Any) -> dict[str, Any]:
    return {"id": id, "type": "TASK", "spec": {"step": "work"}, **rest}


def graph(nodes: list[dict[str, Any]], edges: list[Any], **top: Any) -> Graph:
    full = [
        dict(zip(("from", "to"), edge.split(), strict=True)) if isinstance(edge, str) else edge
        for edge in edges
    ]
    return Graph.load({"name": "drawn", "nodes": nodes, "edges": full, **top})


#: begin → route → (ask | later) → end
CHOICE = graph(
    [
        task("begin", label="The very beginning", retry={"attempts": 3}),
        {"id": "route", "type": "SWITCH"},
        {"id": "ask", "type": "WAIT_FOR_EVENT", "spec": {"event": "yes", "timeout_seconds": 60}},
        {"id": "later", "type": "WAIT", "spec": {"duration": "2h"}},
        {"id": "end", "type": "HTTP", "spec": {"url": "https://a.test/{{input.id}}"}},
    ],
    [
        "begin route",
        {"from": "route", "to": "ask", "condition": "{{tasks.begin.output.total > 500}}"},
        {"from": "route", "to": "later", "default": True},
        "ask end",
        "later end",
    ],
)

FAILURE = {"kind": "refused", "message": 'said "no" </title><script>alert(1)</script>'}


def record(do: str, node: str = "", **rest: Any) -> dict[str, Any]:
    return {"do": do, "node": node, **rest}


#: begin failed once, route chose the wait, which is over; end is under way.
HISTORY = [
    record("OpenRun", definition="drawn", id="d-1"),
    record("CreateTask", "begin", status="pending"),
    record("DispatchTask", "begin", attempt=1),
    record("RetryTask", "begin", attempt=1, failure=FAILURE),
    record("CompleteTask", "begin", attempt=2),
    record("CreateTask", "route", status="completed", branches=["later"]),
    record("CreateTask", "ask", status="skipped"),
    record("CreateTask", "later", status="waiting"),
    record("ResolveWait", "later", status="completed"),
    record("CreateTask", "end", status="pending"),
    record("DispatchTask", "end", attempt=1),
]


def root_of(drawing: str) -> ET.Element:
    return ET.fromstring(drawing)


def groups(drawing: str) -> dict[str, ET.Element]:
    """What is drawn, by its spoken name."""
    found = root_of(drawing).iter(f"{SVG}g")
    return {g.get("aria-label", ""): g for g in found if g.get("aria-label")}
