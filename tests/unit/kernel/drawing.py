"""Draws graphs in one line a node, as the documents people write."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

Member = dict[str, Any]


def task(node: str, input: Any = None, **rest: Any) -> Member:
    """A TASK whose step is `work`; `input` is what the step would be given."""
    spec = {"step": "work"} if input is None else {"step": "work", "input": input}
    return {"id": node, "type": "TASK", "spec": spec, **rest}


def http(node: str, url: str = "https://shop.test/", **rest: Any) -> Member:
    return {"id": node, "type": "HTTP", "spec": {"url": url}, **rest}


def child(node: str, workflow: str = "pay", spec: Any = None, **rest: Any) -> Member:
    """A CHILD of this workflow; `spec`: the other keys of its spec."""
    full = {"workflow": workflow, **(spec or {})}
    return {"id": node, "type": "CHILD", "spec": full, **rest}


def fork(node: str) -> Member:
    return {"id": node, "type": "FORK"}


def join(node: str) -> Member:
    return {"id": node, "type": "JOIN"}


def sw(node: str) -> Member:
    return {"id": node, "type": "SWITCH"}


def wait(node: str, **spec: Any) -> Member:
    """A WAIT with this spec."""
    return {"id": node, "type": "WAIT", "spec": spec}


def wait_for(node: str, signal: str, **spec: Any) -> Member:
    """A WAIT_FOR_SIGNAL for this signal."""
    return {"id": node, "type": "WAIT_FOR_SIGNAL", "spec": {"signal": signal, **spec}}


def edge(source: str, target: str) -> Member:
    return {"from": source, "to": target}


def cond(source: str, target: str, condition: str) -> Member:
    """An edge of a SWITCH that is chosen when the expression is true."""
    return {"from": source, "to": target, "condition": "{{" + condition + "}}"}


def otherwise(source: str, target: str) -> Member:
    """An edge of a SWITCH that is chosen when no condition holds."""
    return {"from": source, "to": target, "default": True}


def chain(*nodes: str) -> list[Member]:
    """The edges of a line of nodes."""
    return [edge(a, b) for a, b in pairwise(nodes)]


def document(nodes: list[Member], edges: list[Member], **rest: Any) -> Member:
    return {"name": "g", "nodes": nodes, "edges": edges, **rest}
