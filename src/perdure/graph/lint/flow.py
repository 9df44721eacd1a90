"""Doubts about nodes and edges: choices that choose nothing, joins that join nothing, nodes that
no run reaches, signals that two nodes fight for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from perdure.graph.check import Checked
from perdure.graph.document import EdgeEntry, NodeEntry
from perdure.graph.form import templated
from perdure.graph.lint.doubt import entry_of, warning
from perdure.model.graph_rules import Finding, Ranks, unreached

#: Pairs of waits for one signal that are looked at.
_MOST_PAIRS = 100


def doubtful_flow(checked: Checked) -> Iterator[Finding]:
    """All doubts about the drawing."""
    leaving: dict[str, list[EdgeEntry]] = {}
    for edge in checked.document.edges:
        leaving.setdefault(edge.source, []).append(edge)
    for node in checked.document.nodes:
        if node.type == "SWITCH":
            yield from _switch(node, leaving.get(node.id, []))
        elif node.type in ("JOIN", "FORK"):
            yield from _joint(checked, node)
    yield from _unreached(checked)
    yield from _shared_signals(checked)


def _switch(node: NodeEntry, edges: list[EdgeEntry]) -> Iterator[Finding]:
    """A SWITCH that may choose nothing, or whose edges do not choose at all (D-7)."""
    conditional = [e for e in edges if e.condition is not None]
    default = [e for e in edges if e.default]
    always = [e for e in edges if e.condition is None and not e.default]
    if not edges:
        yield warning(node.at, node.id, "no edge leaves this SWITCH", "take it out")
    elif not conditional:
        message = "no edge of this SWITCH has a condition: all are always taken"
        yield warning(node.at, node.id, message, "add conditions, or make it a FORK")
    elif not default and not always:
        message = "when no condition holds, everything after this SWITCH is skipped"
        yield warning(node.at, node.id, message, 'give one edge "default": true')
    elif default and always:
        message = "edges without a condition are always taken, also beside the default"
        yield warning(node.at, node.id, message, "give them conditions, or say no default")
    first: dict[str, EdgeEntry] = {}
    for edge in conditional:
        text = "".join((edge.condition or "").split())
        if text in first:
            message = f"the same condition as on the edge to {first[text].target}: both are taken"
            hint = "make one of them another, or use one edge"
            yield warning(f"{edge.at}/condition", node.id, message, hint)
        first.setdefault(text, edge)


def _joint(checked: Checked, node: NodeEntry) -> Iterator[Finding]:
    """A JOIN that joins, or a FORK that forks, fewer than two ways."""
    edges = checked.shape.incoming if node.type == "JOIN" else checked.shape.outgoing
    count = len(edges[node.id])
    if count < 2:
        ways = "one edge" if count else "no edge"
        where = "leads to this JOIN" if node.type == "JOIN" else "leaves this FORK"
        yield warning(node.at, node.id, f"{ways} {where}", "take it out, or add edges")


def _unreached(checked: Checked) -> Iterator[Finding]:
    """Nodes that only a start naming another start node reaches."""
    entry = entry_of(checked)
    if checked.ranks is None or entry not in checked.shape.types:
        return
    lost = set(unreached(checked.shape, checked.ranks, entry))
    for node in checked.document.nodes:
        if node.id in lost:
            message = f"a run that starts at {entry} never reaches this node"
            hint = "lead an edge to it, or start such runs with start_node"
            yield warning(node.at, node.id, message, hint)


def _shared_signals(checked: Checked) -> Iterator[Finding]:
    """Two nodes that may wait for one signal at a time: each signal goes to one of them."""
    ranks = checked.ranks
    waiting: dict[str, list[NodeEntry]] = {}
    for node in checked.document.nodes:
        name = _awaited(node)
        if name is not None and ranks is not None and node.id in checked.shape.types:
            waiting.setdefault(name, []).append(node)
    for name, nodes in waiting.items():
        told: set[str] = set()
        for number, (one, other) in enumerate(combinations(nodes, 2)):
            if number >= _MOST_PAIRS or ranks is None:
                break
            if other.id not in told and _together(ranks, one.id, other.id):
                told.add(other.id)
                message = (
                    f'{one.id} may wait for the signal "{name}" at the same time: '
                    "each one that is sent goes to one of the two"
                )
                yield warning(other.at, other.id, message, "name two signals, or send it twice")


def _awaited(node: NodeEntry) -> str | None:
    key = {"WAIT_FOR_SIGNAL": "signal", "WAIT_FOR_EVENT": "event"}.get(node.type)
    if key is None or not isinstance(node.spec, dict):
        return None
    name = node.spec.get(key)
    return name if isinstance(name, str) and not templated(name) else None


def _together(ranks: Ranks, one: str, other: str) -> bool:
    """Whether neither comes before the other, and no SWITCH chooses between them."""
    if ranks.precedes(one, other) or ranks.precedes(other, one):
        return False
    certain = ranks.certain()
    shared = ranks.ancestors[one] & ranks.ancestors[other]
    for node in ranks.order:
        if ranks.bit[node] & shared:
            both = ranks.bit[one] | ranks.bit[other]
            if certain[node] & both == both:
                return True
    return False
