"""Which way progress is shown: a live picture at a terminal with rich, else lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from perdure.cli.output import has_rich

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.cli.progress import Screen
    from perdure.graph.definition import Graph


def screen_for(book: NodeBook, graph: Graph | None) -> Screen:
    """The screen for runs of this graph; None: nothing is known of its nodes."""
    nodes = {} if graph is None else {node.id: node.type for node in graph.plan.nodes.values()}
    if sys.stderr.isatty() and has_rich():
        from perdure.cli.picture import Picture

        return Picture(book, nodes)
    from perdure.cli.lines import Lines

    return Lines(min(max(map(len, nodes), default=0), 30))
