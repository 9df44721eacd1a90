"""How a run's recorded end looks to whoever asked for its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from perdure.codec.failures import failure_from
from perdure.model.driving import Outcome
from perdure.model.errors import Canceled, Failure, RunFailed
from perdure.model.failure import FailureRecord

_UNKNOWN = FailureRecord("unknown", "the run failed without a recorded reason")


def value_of(outcome: Outcome, read: Callable[[Raw], Any], run: Any) -> Any:
    """The run's output, as `read` makes it of JSON; raises the run's failure: its own class where
    one has the recorded kind, TimedOut, Canceled, else RunFailed."""
    if outcome.status == "completed":
        return None if outcome.output is None else read(Raw(outcome.output))
    raise failure_of(outcome, run)


def failure_of(outcome: Outcome, run: Any) -> Failure:
    """The exception of a run that did not complete."""
    record = outcome.failure or _UNKNOWN
    if outcome.status == "canceled":
        return Canceled(record.message)
    failure = failure_from(record, RunFailed)
    if isinstance(failure, RunFailed):
        failure.run = run
    return failure
