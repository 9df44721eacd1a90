"""Progress as a small live picture of the nodes, at a terminal with rich."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from perdure.cli.calls import given_up
from perdure.cli.live_picture import LivePicture, table_of
from perdure.cli.node_view import OPEN, Change, NodeView
from perdure.cli.nodes import NodeBook
from perdure.cli.output import COLOURS, shortened, took
from perdure.cli.say import on_one_line

_SIGNS: Final = {
    "completed": "✓", "failed": "✗", "skipped": "·", "pending": "▸", "waiting": "◦",
    "canceled": "✗", "compensated": "↶",
}  # fmt: skip


class Picture(LivePicture):
    """`order`: every node of the plan; those not reached yet are drawn too, undos only then."""

    def __init__(self, book: NodeBook, order: Sequence[str]) -> None:
        self._book = book
        self._order = order
        super().__init__(stderr=True, rate=8)

    def changed(self, change: Change) -> None:
        """The next drawing shows it. What is about no node, and the command that sends a signal,
        are lines above: they stay whole."""
        view = self._book.nodes.get(change.node)
        if not change.node or (view is not None and view.status == "waiting" and view.signal):
            self.note(f"{change.node} {change.text}".strip())
        self._live.refresh()

    def drawing(self, height: int) -> RenderableType:
        """The picture as it is now, for a terminal of so many lines."""
        nodes, hidden = self._chosen(max(height - 4, 5))
        table = table_of(5)
        for node in nodes:
            table.add_row(*self._row(node, self._book.nodes.get(node)))
        return Group(table, Text(f"… and {hidden} more nodes", style="dim")) if hidden else table

    def _chosen(self, room: int) -> tuple[list[str], int]:
        """What fits: all nodes in the document's order, or the ones under way and around them."""
        names = list(dict.fromkeys((*self._order, *self._book.nodes)))
        if len(names) <= room:
            return names, 0
        reached = self._book.nodes
        pending = [n for n in names if n in reached and reached[n].status in (*OPEN, "failed")]
        recent = [n for n in reversed(reached) if n not in set(pending)]
        chosen = set((pending + recent)[:room])
        return [n for n in names if n in chosen], len(names) - len(chosen)

    def _row(self, node: str, view: NodeView | None) -> tuple[Text, ...]:
        if view is None:
            return Text(" "), Text(node, style="dim"), Text(""), Text(""), Text("")
        style = COLOURS.get(view.status, "")
        attempt = f"attempt {view.attempt}" if view.attempt > 1 else ""
        status = "running" if view.status == "pending" else view.status
        return (
            Text(_SIGNS.get(view.status, "?"), style=style),
            Text(node),
            Text(status, style=style),
            Text(_elapsed(view)),
            Text(on_one_line("  ".join(filter(None, (attempt, _remark(view)))))),
        )


def _elapsed(view: NodeView) -> str:
    if view.since is None:
        return ""
    end = view.ended or datetime.now(UTC)
    wait = (view.since - end).total_seconds()
    return f"in {took(wait)}" if wait > 0 else took(-wait)


def _remark(view: NodeView) -> str:
    if view.status == "waiting":
        return view.waits.removeprefix("waits ")
    if view.status == "pending" and view.child is not None:
        return f"run {view.child}"
    if view.branches is not None:
        return f"chose {', '.join(view.branches) or 'nothing'}"
    if view.status == "canceled" and (said := given_up(view.node, view.failure)):
        return said
    if view.failure is not None and view.status != "completed":
        return shortened(str(view.failure["message"]), 60)
    return ""
