"""Gates: a step's `when`, asked once, when the step is reached.

Where it says no the step is skipped, and counts as completed for those that depend on it (SX-1):
that is what recording its successors with it says.
"""

from __future__ import annotations

from perdure.kernel.actions import CreateTask
from perdure.kernel.plan import PlannedNode
from perdure.kernel.turn import Turn
from perdure.model.failure import FailureRecord


def opens(turn: Turn, node: PlannedNode) -> bool:
    """Whether the node runs. Where not, it is recorded skipped; or failed, as its gate did."""
    assert node.gate is not None
    id, failure = node.id, None
    try:
        if node.gate.opens(turn.run.input, turn.deps.codec):
            return True
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # nobody cancels it: a CancelledError is the condition's own
        failure = FailureRecord(type(error).__name__, _said(id, error), permanent=True)
    if failure is None:
        after = turn.plan.shape.successors[id]
        turn.emit(CreateTask(turn.new_id(), id, "skipped", branches=after))
    else:
        turn.emit(CreateTask(turn.new_id(), id, "failed", failure=failure))
    return False


def _said(node: str, error: BaseException) -> str:
    try:
        text = str(error).encode(errors="replace").decode()  # JSON takes no half characters
    except Exception:  # its text is users' code, too
        text = "(its text cannot be read)"
    return f"the condition of node {node} failed: {text}"
