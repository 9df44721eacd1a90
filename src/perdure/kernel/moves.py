"""Every legal move of a task and of a run, as data. Folding asserts them, always.

A task is created active (`pending`, `waiting`) or already resolved, goes back to `pending` when an
attempt is retried, and ends once: nothing leaves a resolved status, but that what a node did, or
may have done, is undone. A run ends, and goes on only when it is retried: then the nodes to run
again lose their tasks and get new ones.

    NEW is "no task yet": the node has not been reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NEW: Final = "new"

TASK_MOVES: Final[Mapping[str, frozenset[str]]] = {
    NEW: frozenset({"pending", "waiting", "completed", "skipped", "failed"}),
    "pending": frozenset({"pending", "completed", "failed", "canceled"}),
    "waiting": frozenset({"completed", "failed", "canceled"}),
    "completed": frozenset({"compensated"}),
    "skipped": frozenset(),
    "failed": frozenset({"compensated"}),
    "canceled": frozenset({"compensated"}),
    "compensated": frozenset(),
}

RUN_MOVES: Final[Mapping[str, frozenset[str]]] = {
    NEW: frozenset({"running"}),
    "running": frozenset({"completed", "failed", "canceled"}),
    "completed": frozenset({"running"}),
    "failed": frozenset({"running"}),
    "canceled": frozenset({"running"}),
}

#: Of a running run: only a retry leads back.
PHASE_MOVES: Final[Mapping[str, frozenset[str]]] = {
    "forward": frozenset({"compensating"}),
    "compensating": frozenset({"forward"}),
}


class IllegalMove(AssertionError):
    """A fold that no rule allows: a fault of the machine, or a journal that is not whole."""


def check_task(node: str, before: str, after: str) -> None:
    """Raise IllegalMove unless a task may go from `before` to `after`."""
    if after not in TASK_MOVES[before]:
        raise IllegalMove(f"task of node {node}: {before} cannot become {after}")


def check_run(before: str, after: str) -> None:
    """Raise IllegalMove unless a run may go from `before` to `after`."""
    if after not in RUN_MOVES[before]:
        raise IllegalMove(f"run: {before} cannot become {after}")


def check_phase(before: str, after: str) -> None:
    """Raise IllegalMove unless a run may go from the phase `before` to `after`."""
    if after not in PHASE_MOVES[before]:
        raise IllegalMove(f"run: {before} cannot become {after}")


def drawn(moves: Mapping[str, frozenset[str]]) -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2"]
    for before, afters in moves.items():
        start = "[*]" if before == NEW else before
        lines += [f"    {start} --> {after}" for after in sorted(afters)]
        if not afters:
            lines.append(f"    {before} --> [*]")
    return "\n".join(lines)
