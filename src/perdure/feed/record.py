"""WorkflowRecord: what is left to observe of a run that ended, in one piece, a span for each step.

Made of the run's journal, so it is whole also where other processes did a part of it. It is no
`RunEvent`: it has to be read from the store, and is made only for those who ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import msgspec

from perdure.feed.view import RunView, StepView
from perdure.model.errors import Failure


class StepSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A step, or an undo (`charge~undo`). `state` as in StepView. `attempts`: how many there were.
    `started`, `ended`: aware, UTC; None of a step that was never reached. `error`: why it failed.
    """

    name: str
    state: str
    attempts: int
    started: datetime | None
    ended: datetime | None
    error: str


class WorkflowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run that ended. `outcome`: "completed", "failed" or "canceled"; `failure`: why, of the
    last two. `steps`: every step of the plan, in its order, each followed by its undo if there was
    one; of code, its calls. Holds no values."""

    workflow: str
    run_id: str
    version: str
    trigger: str
    outcome: str
    failure: Failure | None
    started: datetime
    ended: datetime
    steps: tuple[StepSpan, ...]


def record_of(view: RunView, failure: Failure | None) -> WorkflowRecord:
    """The record of a run that ended, as its journal tells it."""
    assert view.ended is not None
    return WorkflowRecord(
        workflow=view.workflow,
        run_id=view.id,
        version=view.version,
        trigger=view.trigger,
        outcome=view.outcome,
        failure=failure,
        started=view.started or view.ended,
        ended=view.ended,
        steps=tuple(_spans(view)),
    )


def _spans(view: RunView) -> Iterator[StepSpan]:
    for step in view.steps.values():
        yield _span(step)
        if step.undo is not None:
            yield _span(step.undo)


def _span(step: StepView) -> StepSpan:
    return StepSpan(
        name=step.name,
        state=step.state,
        attempts=step.attempt,
        started=step.started,
        ended=step.ended,
        error=step.error,
    )
