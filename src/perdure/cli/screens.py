"""Which way progress is shown: a live picture at a terminal with rich, else lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from perdure.cli.output import has_rich

if TYPE_CHECKING:
    from perdure.cli.nodes import NodeBook
    from perdure.cli.progress import Screen
    from perdure.model.definition import Definition


def screen_for(book: NodeBook, definition: Definition[Any, Any] | None) -> Screen:
    """The screen for runs of this definition; None: nothing is known of its nodes."""
    nodes = () if definition is None else definition.planned
    if sys.stderr.isatty() and has_rich():
        from perdure.cli.picture import Picture

        return Picture(book, nodes)
    from perdure.cli.lines import Lines

    return Lines(min(max(map(len, nodes), default=0), 30))
