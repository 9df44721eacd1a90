"""The public names are a promise: this list changes only together with docs and a changelog entry.

It grows issue by issue; nothing leaves it without a release that said so before.
"""

from __future__ import annotations

import perdure
import perdure.errors
import perdure.feed
import perdure.model.errors

PUBLIC = [
    "After",
    "AlreadyStarted",
    "Canceled",
    "Channel",
    "Client",
    "Codec",
    "Context",
    "Definition",
    "DefinitionError",
    "Engine",
    "Failure",
    "Graph",
    "InvalidRequest",
    "NonDeterminism",
    "NotFound",
    "On",
    "Outputs",
    "PerdureError",
    "Permanent",
    "Retry",
    "Run",
    "RunActive",
    "RunFailed",
    "RunFinished",
    "RunInfo",
    "Saga",
    "SagaContext",
    "Signal",
    "Step",
    "StepContext",
    "StepFailed",
    "StoreError",
    "TimedOut",
    "Unsupported",
    "Workflow",
    "current_step",
    "step",
    "workflow",
]

FEED = [
    "ClientEvent",
    "LiveView",
    "ReportIgnored",
    "RunCanceled",
    "RunEvent",
    "RunSignaled",
    "RunStarted",
    "RunView",
    "StepSpan",
    "StepView",
    "WaitEnded",
    "WaitStarted",
    "WorkflowCanceled",
    "WorkflowCompensationCompleted",
    "WorkflowCompensationFailed",
    "WorkflowCompensationStarted",
    "WorkflowCompleted",
    "WorkflowContinued",
    "WorkflowFailed",
    "WorkflowFinished",
    "WorkflowPaused",
    "WorkflowRecord",
    "WorkflowRetried",
    "WorkflowStarted",
    "WorkflowStepCompleted",
    "WorkflowStepEvent",
    "WorkflowStepFailed",
    "WorkflowStepRetrying",
    "WorkflowStepSkipped",
    "WorkflowStepStarted",
    "WorkflowTimedOut",
    "WorkflowUnpaused",
]


def test_the_names_of_the_feed_are_exactly_these() -> None:
    assert perdure.feed.__all__ == FEED
    assert [name for name in FEED if not hasattr(perdure.feed, name)] == []


def test_the_public_names_are_exactly_these() -> None:
    assert sorted(perdure.__all__) == sorted(PUBLIC)


def test_every_exception_is_in_one_module() -> None:
    found = {
        name
        for name, kind in vars(perdure.model.errors).items()
        if isinstance(kind, type) and issubclass(kind, perdure.PerdureError)
    }
    assert found == set(perdure.errors.__all__)


def test_public_names_are_listed_once_and_sorted() -> None:
    assert list(perdure.__all__) == sorted(set(perdure.__all__))


def test_every_public_name_is_there() -> None:
    missing = [name for name in perdure.__all__ if not hasattr(perdure, name)]
    assert missing == []
