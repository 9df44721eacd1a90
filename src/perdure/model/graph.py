"""The shape of a graph: nodes, edges and the indexes routing needs, built once per definition.

Knows nothing of templates: those are compiled beside it (kernel/plan.py). Order is the
document's order everywhere, so every walk is the same on every machine (G-57).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

WORKER_TYPES = frozenset({"HTTP", "TASK"})
#: Asks for another run and waits for its end.
CHILD = "CHILD"
#: A saga's step, or its undo: never written in a document.
SAGA = "SAGA"
CONTROL_TYPES = frozenset({"SWITCH", "FORK", "JOIN"})
#: Never given to a worker: they park until their time or their signal comes.
WAIT_TYPES = frozenset({"WAIT", "WAIT_FOR_SIGNAL"})
NODE_TYPES = WORKER_TYPES | CONTROL_TYPES | WAIT_TYPES | {CHILD}


class Edge(msgspec.Struct, frozen=True):
    """From a node to a node; `conditional`: the SWITCH it leaves asks before choosing it."""

    source: str
    target: str
    conditional: bool = False
    default: bool = False


class GraphShape:
    """Node ids with types, and edges, with the lookups routing asks for."""

    __slots__ = ("edges", "entries", "incoming", "outgoing", "successors", "types")

    def __init__(self, types: Mapping[str, str], edges: Sequence[Edge]) -> None:
        self.types = dict(types)
        self.edges = tuple(edges)
        self.incoming: dict[str, list[Edge]] = {node: [] for node in types}
        self.outgoing: dict[str, list[Edge]] = {node: [] for node in types}
        for edge in self.edges:
            self.outgoing[edge.source].append(edge)
            self.incoming[edge.target].append(edge)
        self.successors: dict[str, tuple[str, ...]] = {
            node: tuple(dict.fromkeys(e.target for e in out)) for node, out in self.outgoing.items()
        }
        #: The nodes without incoming edges.
        self.entries: tuple[str, ...] = tuple(n for n, inc in self.incoming.items() if not inc)

    def descendants(self, node: str) -> list[str]:
        """Every node reachable from `node`, itself not counted, in breadth-first order."""
        return [n for n in self._walk([node], self.successors) if n != node]

    def behind(self, nodes: Iterable[str]) -> list[str]:
        """Every node that can be reached from some of these by an edge at least, once."""
        after = (other for node in nodes for other in self.successors[node])
        return self._walk(after, self.successors)

    def leads(self, earlier: str, later: str) -> bool:
        """Whether `later` can be reached from `earlier`, another node. Looks backwards from
        `later`, what stands next to it first."""
        queue, seen = [later], {later}
        for node in queue:  # grows while it is walked
            for edge in self.incoming[node]:
                if edge.source == earlier:
                    return True
                if edge.source not in seen:
                    seen.add(edge.source)
                    queue.append(edge.source)
        return False

    def leaves(self) -> list[str]:
        """The nodes without outgoing edges, in document order."""
        return [n for n, out in self.outgoing.items() if not out]

    @staticmethod
    def _walk(start: Iterable[str], following: Mapping[str, Iterable[str]]) -> list[str]:
        seen = dict.fromkeys(start)
        queue = list(seen)
        for node in queue:
            for other in following.get(node, ()):
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return queue
