"""Coverage: which edges and nodes of a document no rehearsal took."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from perdure.model.errors import InvalidRequest
from perdure.testing.rehearsal import Rehearsal

Edge = tuple[str, str]


class Coverage(msgspec.Struct, frozen=True):
    """`edges`: how many the document has; `missed`: those that no rehearsal took; `never_ran`: the
    nodes that none ran."""

    edges: int
    missed: tuple[Edge, ...]
    never_ran: tuple[str, ...]

    @property
    def percent(self) -> float:
        """Edges taken of all, in percent; 100 where there are none."""
        return 100.0 if not self.edges else 100 * (self.edges - len(self.missed)) / self.edges

    def __str__(self) -> str:
        taken = self.edges - len(self.missed)
        lines = [f"{taken} of {self.edges} edges taken ({self.percent:.0f} %)"]
        lines += [f"  never taken: {source} → {target}" for source, target in self.missed]
        lines += [f"  never ran: {node}" for node in self.never_ran]
        return "\n".join(lines)


def coverage(rehearsals: Iterable[Rehearsal]) -> Coverage:
    """What these rehearsals, of one document, took together. Raises InvalidRequest for none, and
    for rehearsals of different documents."""
    known = list(rehearsals)
    if len({rehearsal.graph.hash for rehearsal in known}) != 1:
        raise InvalidRequest("coverage is of one or more rehearsals of the same document")
    taken = {edge for rehearsal in known for edge in rehearsal.edges}
    ran = {node for rehearsal in known for node in rehearsal.route}
    shape = known[0].graph.plan.shape
    edges = [(edge.source, edge.target) for edge in shape.edges]
    return Coverage(
        len(edges),
        tuple(edge for edge in edges if edge not in taken),
        tuple(node for node in shape.types if node not in ran),
    )
