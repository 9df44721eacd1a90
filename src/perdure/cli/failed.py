"""A run that failed, in words: which nodes, at which attempt, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from perdure.cli.calls import stalled
from perdure.cli.node_view import NodeView
from perdure.cli.nodes import NodeBook
from perdure.cli.output import shortened
from perdure.cli.reasons import reason, run_reason

if TYPE_CHECKING:
    from perdure.model.errors import Failure

#: Of the attempts before the last one, so many lines are told.
TOLD: Final = 5
#: Of nodes that the details of a failure name under these keys.
_UNDONE: Final = {
    "undone": "undone",
    "undo_failed": "not undone, somebody must look",
    "unknown": "nobody knows whether this was done",
}


def failed_run(
    name: str, status: str, failure: Failure, book: NodeBook, *, before: bool = False
) -> str:
    """`perdure: order/o-1 failed`, then a line for each failed node (and one for what came with
    the failure, such as an HTTP answer), or for the run's reason. `before`: also what the attempts
    before the last one came to."""
    lines = [f"perdure: {name} {'was canceled' if status == 'canceled' else 'failed'}"]
    for view in _told(book, failure):
        assert view.failure is not None
        attempt = f", attempt {view.attempt}" if view.attempt else ""
        text = reason(str(view.failure["kind"]), str(view.failure["message"]))
        lines.append(f"  node {view.node}{attempt}: {text}")
        lines += [f"    {line}" for line in _before(view) if before]
        if details := view.failure.get("details"):
            lines.append(f"    {shortened(details, 200)}")
    if len(lines) == 1:
        lines.append(f"  {run_reason(failure.kind, str(failure), failure.details)}")
    if isinstance(failure.details, Mapping):
        if why := failure.details.get("stalled"):
            lines += [f"    {line}" for line in stalled(str(why))]  # it ended without its code
        lines += [f"  {said}: {', '.join(nodes)}" for said, nodes in _undone(failure.details)]
    return "\n".join(lines)


def done_again(failure: Failure) -> str:
    """What a retry does again, in words."""
    details = failure.details
    undone = isinstance(details, Mapping) and details.get("undone")
    return "what failed, or was undone," if undone else "what failed"


def _undone(details: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """What became of what a run did, where it was undone: nodes of which the same can be said."""
    for key, said in _UNDONE.items():
        nodes = details.get(key)
        if nodes and isinstance(nodes, list):
            yield said, [str(node) for node in nodes]


def _told(book: NodeBook, failure: Failure) -> list[NodeView]:
    """The failed nodes; of code those that ended it, since it may have dealt with the others."""
    failed = book.having("failed")
    if not book.code:
        return failed
    end = (failure.kind, str(failure))
    return [
        view
        for view in failed
        if view.failure and (view.failure["kind"], str(view.failure["message"])) == end
    ]


def _before(view: NodeView) -> list[str]:
    """What the attempts before the last one came to: of attempts alike in a row, the range."""
    told: list[str] = []
    earlier = [(n, reason(str(f["kind"]), str(f["message"]))) for n, f in view.errors[:-1]]
    for why, group in groupby(earlier, key=itemgetter(1)):
        numbers = [n for n, _ in group]
        span = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else str(numbers[0])
        told.append(f"attempt{'s' if len(numbers) > 1 else ''} {span}: {why}")
    return told if len(told) <= TOLD else [f"… and {len(told) - TOLD} before", *told[-TOLD:]]
