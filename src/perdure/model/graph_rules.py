"""What makes nodes and edges a sound graph, and who comes before whom.

Pure, on plain data, for every door that draws a graph. All problems are found, not the first
only (D-24); each is a Finding with the place, the reason and what to do. Orders and ancestors
are worked out once, as bit masks: a thousand nodes must load well within a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from perdure.model.graph import Edge, GraphShape
from perdure.model.guesses import did_you_mean


class Finding(msgspec.Struct, frozen=True):
    """Something wrong, or doubtful, in a document.

    `pointer`: the JSON pointer of the value it is about ("" = the whole document). `node`: the
    id of the node it concerns, if any. `hint`: what to do. `line` and `column`: where it stands
    in the text that was loaded, from 1; 0 when there was no text. `on_key`: it is about the key
    and not about what the key holds. `within`: line and column inside the string it is about, as
    long as `line` and `column` do not tell that place.
    """

    pointer: str
    message: str
    node: str | None = None
    hint: str = ""
    severity: Literal["error", "warning"] = "error"
    line: int = 0
    column: int = 0
    on_key: bool = False
    within: tuple[int, int] | None = None

    def __str__(self) -> str:
        return self.shown()

    def shown(self, file: str = "") -> str:
        """The finding in one line of text, with the name of the file it was found in."""
        place = self.place(file)
        joint = ": " if file or not self.pointer else ", "
        return f"{place}{joint}{self.text}" if place else self.text

    def place(self, file: str = "") -> str:
        """Where it stands: `order.yaml:14:9`, or without a file `line 14, column 9`; "" when
        neither is known."""
        if file:
            return f"{file}:{self.line}:{self.column}" if self.line else file
        return f"line {self.line}, column {self.column}" if self.line else ""

    @property
    def text(self) -> str:
        """What is wrong, with the pointer, the node and the hint, and without the place."""
        node = f" (node {self.node})" if self.node is not None else ""
        inside = f" ({_inside(*self.within)})" if self.within is not None else ""
        hint = f"; {self.hint}" if self.hint else ""
        pointer = self.pointer if len(self.pointer) <= 200 else f"{self.pointer[:199]}…"
        about = f"{pointer}{node}: " if pointer else ""
        return f"{about}{self.message}{inside}{hint}"


def _inside(line: int, column: int) -> str:
    return f"column {column} of the text" if line == 1 else f"its line {line}, column {column}"


def repeated_ids(nodes: Sequence[tuple[int, str]]) -> Iterator[Finding]:
    """Ids used twice; nodes are (index in the document, id)."""
    first: dict[str, int] = {}
    for index, node in nodes:
        if node in first:
            yield Finding(
                f"/nodes/{index}/id",
                f'the id "{node}" is also that of /nodes/{first[node]}',
                node,
                "give each node an id of its own",
            )
        else:
            first[node] = index


def edge_problems(types: Mapping[str, str], edges: Sequence[tuple[int, Edge]]) -> Iterator[Finding]:
    """Edges that lead nowhere, twice to one place, or ask where nothing is asked (D-7, D-11).

    A node whose type is "" (not known) gets no complaints about its edges.
    """
    seen: dict[tuple[str, str], int] = {}
    defaults: dict[str, int] = {}
    for index, edge in edges:
        at = f"/edges/{index}"
        for key, end in (("from", edge.source), ("to", edge.target)):
            if end not in types:
                hint = did_you_mean(end, list(types))
                yield Finding(f"{at}/{key}", f'there is no node "{end}"', None, hint)
        pair = (edge.source, edge.target)
        if pair in seen:
            yield Finding(
                at,
                f"a second edge from {edge.source} to {edge.target} "
                f"(the first is /edges/{seen[pair]})",
                edge.source,
                "keep one; join conditions with ||",
            )
        seen.setdefault(pair, index)
        yield from _choice_problems(at, edge, types.get(edge.source, ""))
        if edge.default and edge.source in defaults:
            yield Finding(
                f"{at}/default",
                f"a second default of {edge.source} (the first is /edges/{defaults[edge.source]})",
                edge.source,
                "keep one",
            )
        elif edge.default:
            defaults[edge.source] = index


def _choice_problems(at: str, edge: Edge, source_type: str) -> Iterator[Finding]:
    if edge.default and edge.conditional:
        yield Finding(
            f"{at}/default",
            "a default edge has no condition: it is taken when no condition holds",
            edge.source,
            "drop one of the two",
        )
    if source_type in ("", "SWITCH"):
        return
    for key, present in (("condition", edge.conditional), ("default", edge.default)):
        if present:
            yield Finding(
                f"{at}/{key}",
                f"only edges that leave a SWITCH choose; {edge.source} is a {source_type}",
                edge.source,
                "put a SWITCH between the two nodes",
            )


def cycles(shape: GraphShape) -> list[list[str]]:
    """Cycles that share no node with one another: each as its nodes in order, from the first of
    the document. Empty = the graph has none."""
    done: set[str] = set()
    found: list[list[str]] = []
    taken: set[str] = set()
    for root in shape.types:
        if root in done:
            continue
        path: dict[str, Iterator[str]] = {root: iter(shape.successors[root])}
        while path:
            node, successors = next(reversed(path.items()))
            following = next(successors, None)
            if following is None:
                done.add(node)
                del path[node]
            elif following in path:
                if following not in taken:
                    walked = list(path)
                    cycle = walked[walked.index(following) :]
                    if taken.isdisjoint(cycle):
                        found.append(cycle)
                        taken.update(cycle)
                    taken.add(following)
            elif following not in done:
                path[following] = iter(shape.successors[following])
    return found


def cycle_problems(shape: GraphShape) -> list[Finding]:
    """One finding for each cycle, naming it."""
    return [
        Finding(
            "/edges",
            f"the nodes go round in a circle: {' → '.join([*cycle, cycle[0]])}",
            cycle[0],
            "take out one of these edges; a graph runs each node once",
        )
        for cycle in (_shown(c) for c in cycles(shape))
    ]


def _shown(cycle: list[str]) -> list[str]:
    return cycle if len(cycle) <= 12 else [*cycle[:10], "…", cycle[-1]]


class Ranks:
    """An acyclic graph in topological order, with masks: bit i stands for `order[i]`."""

    __slots__ = ("ancestors", "bit", "order", "shape")

    def __init__(self, shape: GraphShape) -> None:
        self.shape = shape
        self.order = _topological(shape)
        self.bit = {node: 1 << rank for rank, node in enumerate(self.order)}
        #: Node → the nodes from which it can be reached, itself not counted.
        self.ancestors: dict[str, int] = {}
        for node in self.order:
            mask = 0
            for edge in shape.incoming[node]:
                mask |= self.ancestors[edge.source] | self.bit[edge.source]
            self.ancestors[node] = mask

    def precedes(self, earlier: str, later: str) -> bool:
        """Whether `later` can be reached from `earlier`."""
        return bool(self.ancestors[later] & self.bit[earlier])

    def certain(self) -> dict[str, int]:
        """Node → the nodes that have surely run, or surely will, when it runs: nothing between
        depends on what a SWITCH chooses. Itself counted."""
        forward: dict[str, int] = {}
        for node in reversed(self.order):
            chosen = [e for e in self.shape.outgoing[node] if e.conditional or e.default]
            always = [e for e in self.shape.outgoing[node] if not (e.conditional or e.default)]
            # With a default, one of those that a SWITCH chooses from is certain to be taken.
            some = _shared(forward[e.target] for e in chosen) if _has_default(chosen) else 0
            mask = self.bit[node] | some
            for edge in always:
                mask |= forward[edge.target]
            forward[node] = mask
        result: dict[str, int] = {}
        for node in self.order:
            sources = (result[e.source] for e in self.shape.incoming[node])
            result[node] = forward[node] | _shared(sources)
        return result


def _has_default(edges: Iterable[Edge]) -> bool:
    return any(edge.default for edge in edges)


def _shared(masks: Iterable[int]) -> int:
    """The bits that all masks have; none of none."""
    result: int | None = None
    for mask in masks:
        result = mask if result is None else result & mask
    return result or 0


def _topological(shape: GraphShape) -> list[str]:
    missing = {node: len(incoming) for node, incoming in shape.incoming.items()}
    order = [node for node, count in missing.items() if not count]
    for node in order:
        for edge in shape.outgoing[node]:
            missing[edge.target] -= 1
            if not missing[edge.target]:
                order.append(edge.target)
    assert len(order) == len(shape.types), "the graph has a cycle"
    return order


def entry_problems(shape: GraphShape, ranks: Ranks, entry: str | None) -> Iterator[Finding]:
    """No start, or one from which a run could only end blocked (D-6)."""
    if entry is None:
        if len(shape.entries) > 1:
            roots = ", ".join(shape.entries[:10]) + (", …" if len(shape.entries) > 10 else "")
            yield Finding(
                "/nodes",
                f"{len(shape.entries)} nodes have no incoming edge ({roots})",
                None,
                'say where a run starts: "entry", or a FORK before them',
            )
        return
    if entry not in shape.types:
        hint = did_you_mean(entry, list(shape.types))
        yield Finding("/entry", f'there is no node "{entry}"', None, hint)
        return
    for node in shape.types:
        if node == entry or not ranks.precedes(entry, node):
            continue
        for edge in shape.incoming[node]:
            if edge.source != entry and not ranks.precedes(entry, edge.source):
                yield Finding(
                    "/entry",
                    f"a run that starts at {entry} never reaches {edge.source}, "
                    f"so {node} would wait for it for ever",
                    node,
                    f"start before both, or take out the edge from {edge.source} to {node}",
                )


def unreached(shape: GraphShape, ranks: Ranks, entry: str) -> list[str]:
    """The nodes that a run starting at `entry` cannot reach, in document order."""
    return [n for n in shape.types if n != entry and not ranks.precedes(entry, n)]
