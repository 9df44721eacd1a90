"""Gates: a step's `when`, asked once, when the step is reached; the answer stays with the decision
while that is made again, after a Load or trouble with the store.

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
    id, input, before = node.id, turn.run.input, turn.answers.get(node.id)
    if before is not None and before[0] is input:
        answer = before[1]
    else:
        answer = _asked(turn, node)
        turn.answers[id] = (input, answer)
    if answer is True:
        return True
    if answer is False:
        after = turn.plan.shape.successors[id]
        turn.emit(CreateTask(turn.new_id(), id, "skipped", branches=after))
    else:
        turn.emit(CreateTask(turn.new_id(), id, "failed", failure=answer))
    return False


def _asked(turn: Turn, node: PlannedNode) -> bool | FailureRecord:
    """What the gate says, or why it could not."""
    assert node.gate is not None
    try:
        return node.gate.opens(turn.run.input, turn.deps.codec)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # nobody cancels it: a CancelledError is the condition's own
        return FailureRecord(type(error).__name__, _said(node.id, error), permanent=True)


def _said(node: str, error: BaseException) -> str:
    try:
        text = str(error).encode(errors="replace").decode()  # JSON takes no half characters
    except Exception:  # its text is users' code, too
        text = "(its text cannot be read)"
    return f"the condition of node {node} failed: {text}"
