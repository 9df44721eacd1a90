"""How a run's recorded end looks to whoever asked for its result."""

from __future__ import annotations

from typing import Any, Final

from perdure.codec.failures import failure_from
from perdure.kernel.untold import leaves
from perdure.model.driving import Outcome
from perdure.model.errors import Canceled, Failure, RunFailed, StepFailed
from perdure.model.failure import FailureRecord

#: What the failure of a run says of the node that failed first, in its details.
_OF_A_NODE: Final = frozenset(("node", "failed", "details"))
_UNKNOWN = FailureRecord("unknown", "the run failed without a recorded reason")


def failure_of(outcome: Outcome, run: Any) -> Failure:
    """The exception of a run that did not complete: its own class where one has the recorded kind,
    TimedOut, Canceled, else RunFailed."""
    record = outcome.failure or _UNKNOWN
    canceled = outcome.status == "canceled"
    failure: Failure = (
        Canceled(record.message, details=record.details)
        if canceled
        else failure_from(record, RunFailed)
    )
    if compensated(record):
        failure.compensated = True
    if canceled:
        return failure
    if isinstance(failure, RunFailed):
        failure.run = run
    failure.__cause__ = _step_failure(record, run)
    return failure


def compensated(record: FailureRecord) -> bool:
    """Whether something was undone, and with it all that the run had done, or may have."""
    return leaves(record) is False and bool(record.details["undone"])


def _step_failure(record: FailureRecord, run: Any) -> StepFailed | None:
    """The failure of the step that ended a run of a graph or a saga; None of other runs."""
    details = record.details
    if not isinstance(details, dict) or not details.keys() >= _OF_A_NODE:
        return None
    node, failed = details["node"], details["failed"]
    if not isinstance(node, str) or not isinstance(failed, int):
        return None  # the details of a workflow's own failure
    message = record.message.removeprefix(f"node {node} failed: ")
    if failed != 1:
        message = message.removesuffix(f" (and {failed - 1} more failed)")
    made = StepFailed(message, kind=record.kind, details=details["details"])
    made.permanent = record.permanent
    made.workflow, made.step = run.workflow, node
    made.attempt = details.get("attempt", 0)
    return made
