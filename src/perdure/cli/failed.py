"""A run that failed, in words: which nodes, at which attempt, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure.cli.nodes import NodeBook, reason
from perdure.cli.output import shortened

if TYPE_CHECKING:
    from perdure.model.errors import Failure


def failed_run(name: str, status: str, failure: Failure, book: NodeBook) -> str:
    """`perdure: order/o-1 failed`, then a line for each failed node (and one for what came with
    the failure, such as an HTTP answer), or for the run's reason."""
    lines = [f"perdure: {name} {'was canceled' if status == 'canceled' else 'failed'}"]
    for view in book.having("failed"):
        assert view.failure is not None
        attempt = f", attempt {view.attempt}" if view.attempt else ""
        text = reason(str(view.failure["kind"]), str(view.failure["message"]))
        lines.append(f"  node {view.node}{attempt}: {text}")
        if details := view.failure.get("details"):
            lines.append(f"    {shortened(details, 200)}")
    if len(lines) == 1:
        lines.append(f"  {reason(failure.kind, str(failure))}")
    return "\n".join(lines)
