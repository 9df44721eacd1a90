"""Documents to test with: small good ones, and ways to spoil them."""

from __future__ import annotations

import copy
from typing import Any

from perdure.graph import Graph, lint
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding

#: fetch -> route -> review -> ship, and from route straight to ship.
ORDER: dict[str, Any] = {
    "name": "order",
    "nodes": [
        {
            "id": "fetch",
            "type": "HTTP",
            "spec": {"url": "https://shop.test/api/{{input.order_id}}"},
            "retry": {"attempts": 3},
        },
        {"id": "route", "type": "SWITCH"},
        {"id": "review", "type": "TASK", "spec": {"step": "review", "input": {"by": "ann"}}},
        {
            "id": "ship",
            "type": "TASK",
            "spec": {"step": "ship-order", "input": {"order": "{{tasks.fetch.output.body}}"}},
        },
    ],
    "edges": [
        {"from": "fetch", "to": "route"},
        {"from": "route", "to": "review", "condition": "{{tasks.fetch.output.body.total > 1000}}"},
        {"from": "route", "to": "ship", "default": True},
        {"from": "review", "to": "ship"},
    ],
    "output": {"tracking": "{{tasks.ship.output}}"},
}


def changed(pointer: str, value: Any, document: dict[str, Any] = ORDER) -> dict[str, Any]:
    """The document with the value at a JSON pointer replaced, or added."""
    result = copy.deepcopy(document)
    *way, last = pointer[1:].split("/")
    at: Any = result
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at[key]
    if isinstance(at, list):
        at[int(last) :] = [value, *at[int(last) + 1 :]]
    else:
        at[last] = value
    return result


def without(pointer: str, document: dict[str, Any] = ORDER) -> dict[str, Any]:
    """The document without the member at a JSON pointer."""
    result = copy.deepcopy(document)
    *way, last = pointer[1:].split("/")
    at: Any = result
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at[key]
    del at[int(last) if isinstance(at, list) else last]
    return result


def problems(document: Any) -> list[Finding]:
    """What `Graph.load` refuses the document for; [] = it loads."""
    try:
        Graph.load(document)
    except GraphError as error:
        return list(error.problems)
    return []


def warnings(document: Any) -> list[Finding]:
    """What lint warns of in a document that loads."""
    found = lint(document)
    assert all(finding.severity == "warning" for finding in found), found
    return found


def task(node: str, input: Any = None, **rest: Any) -> dict[str, Any]:
    """A TASK; its spec reads what `input` says."""
    return {"id": node, "type": "TASK", "spec": {"step": "work", "input": input or {}}, **rest}


def document(nodes: str, edges: str, **rest: Any) -> dict[str, Any]:
    """A document drawn in two lines. Nodes: `a b:SWITCH` (TASK unless said). Edges: `a>b` plain,
    `a?b` with a condition that reads the input, `a:b` the default."""
    members = []
    for word in nodes.split():
        node, _, kind = word.partition(":")
        members.append(task(node) if not kind else {"id": node, "type": kind})
    lines: list[dict[str, Any]] = []
    for word in edges.split():
        sign = next(sign for sign in ">?:" if sign in word)
        source, target = word.split(sign)
        asked = f"{{{{input.x == '{target}'}}}}"
        extra = {"?": {"condition": asked}, ":": {"default": True}}.get(sign, {})
        lines.append({"from": source, "to": target, **extra})
    return {"name": "drawn", "nodes": members, "edges": lines, **rest}
