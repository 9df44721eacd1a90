"""How a drawn graph must end, worked out in one pass from the rules as they are written down.

Knows nothing of events or of the order of reports: nodes are taken in an order edges follow.
"""

from __future__ import annotations

from tests.property.kernel.graphs import Drawn, Link, Node


class Refused(Exception):
    """A routing error that the start alone leads to: the start is refused (D-5)."""


class Broken(Exception):
    """A condition that cannot be evaluated."""


def expected(graph: Drawn) -> dict[str, str]:
    """Node → final status, `unreached` included. Raises Refused."""
    status: dict[str, str] = {}
    chosen: dict[str, set[str]] = {}
    at_start: set[str] = set()
    for index, node in enumerate(graph.nodes):
        edges = [_active(link, status, chosen) for link in graph.incoming(node.id)]
        if index and None in edges:
            status[node.id] = "unreached"
            continue
        if all(link.source in at_start for link in graph.incoming(node.id)):
            at_start.add(node.id)
        if index and not any(edges):
            status[node.id] = "skipped"
            continue
        status[node.id] = _run(graph, node, status, chosen)
        if node.kind == "SWITCH" and status[node.id] == "failed" and node.id in at_start:
            raise Refused(node.id)
        if node.kind == "TASK":
            at_start.discard(node.id)
    return status


def _active(link: Link, status: dict[str, str], chosen: dict[str, set[str]]) -> bool | None:
    """True, False, or None for an edge that is not resolved."""
    if status[link.source] == "skipped":
        return False
    if status[link.source] != "completed":
        return None
    return link.source not in chosen or link.target in chosen[link.source]


def _run(graph: Drawn, node: Node, status: dict[str, str], chosen: dict[str, set[str]]) -> str:
    if node.kind == "TASK":
        readable = node.reads is None or status[node.reads] == "completed"
        return "completed" if readable and node.ends == "well" else "failed"
    if node.kind == "SWITCH":
        try:
            chosen[node.id] = _choice(graph, node.id, status)
        except Broken:
            return "failed"
    return "completed"


def _choice(graph: Drawn, switch: str, status: dict[str, str]) -> set[str]:
    links = graph.outgoing(switch)
    true = {link.target for link in links if link.asks is not None and _true(graph, link, status)}
    always = {link.target for link in links if link.asks is None and not link.default}
    rest = {link.target for link in links if link.default}
    return true | always | (set() if true else rest)


def _true(graph: Drawn, link: Link, status: dict[str, str]) -> bool:
    asks = link.asks
    if isinstance(asks, bool):
        return asks
    assert asks is not None
    node = asks.removeprefix("?")
    if asks == "broken" or (status[node] != "completed" and node == asks):
        raise Broken
    return status[node] == "completed" and graph.node(node).number > 0
