"""The golden journals of runs that were undone."""

from __future__ import annotations

from msgspec import Raw

from perdure.kernel.actions import (
    BeginCompensation,
    CancelTasks,
    CompensateTask,
    CompleteTask,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    RequestStop,
    ResolveWait,
    RetryTask,
    Transition,
)
from perdure.model.failure import FailureRecord
from tests.replay.opening import AT, Journal, opened


def undone() -> Journal:
    """A graph with undos that is canceled while a node is under way, which is given up: both what
    it may have done and what it did are undone."""
    stop = FailureRecord("workflow.canceled", "enough", permanent=True)
    given_up = FailureRecord("workflow.canceled", "no answer", permanent=True)
    null = Raw(b"null")
    return [
        [
            Transition(
                AT,
                [
                    opened(),
                    CreateTask("t1", "charge", "pending", null),
                    DispatchTask("t1", "charge"),
                ],
            ),
            Transition(
                AT + 1,
                [
                    CompleteTask("t1", "charge", 0, null, metadata={"card": Raw(b'{"id":"c1"}')}),
                    CreateTask("t2", "gift", "skipped", branches=("ship",)),
                    CreateTask("t3", "ship", "pending", null),
                    DispatchTask("t3", "ship"),
                ],
            ),
        ],
        [
            Transition(
                AT + 2,
                [
                    RequestStop(stop, "cancel"),
                    CreateTask("t4", "~grace", "waiting", wake_at=AT + 30_000_002),
                ],
            ),
            Transition(
                AT + 30_000_002,
                [
                    ResolveWait("t4", "~grace", "completed", null),
                    CancelTasks(given_up, ("ship",), "canceled", True),
                    BeginCompensation("cancel", stop, ("ship",)),
                    CreateTask("t5", "ship~undo", "pending", null),
                    DispatchTask("t5", "ship~undo"),
                ],
            ),
        ],
        [
            Transition(
                AT + 30_000_003,
                [
                    CompleteTask("t5", "ship~undo", 0, null),
                    CompensateTask("t3", "ship"),
                    CreateTask("t6", "charge~undo", "pending", null),
                    DispatchTask("t6", "charge~undo"),
                ],
            ),
            Transition(
                AT + 30_000_004,
                [
                    CompleteTask("t6", "charge~undo", 0, null, metadata={"refund": null}),
                    CompensateTask("t1", "charge"),
                    FinishRun("canceled", failure=stop),
                ],
            ),
        ],
    ]


def untold() -> Journal:
    """An attempt that timed out, one that then failed: nobody knows what the first did, so it is
    undone, although the node has failed."""
    late = FailureRecord("workflow.timeout", "it took longer than 5 s")
    declined = FailureRecord("card.declined", "no funds", permanent=True)
    null = Raw(b"null")
    created = CreateTask("t1", "charge", "pending", null)
    return [
        [Transition(AT, [opened(), created, DispatchTask("t1", "charge")])],
        [Transition(AT + 5, [RetryTask("t1", "charge", 0, late, AT + 9, unknown=True)])],
        [
            Transition(
                AT + 10,
                [
                    FailTask("t1", "charge", 1, declined, unknown=True),
                    BeginCompensation("failure", declined, ("charge",)),
                    CreateTask("t2", "charge~undo", "pending", null),
                    DispatchTask("t2", "charge~undo"),
                ],
            )
        ],
        [
            Transition(
                AT + 11,
                [
                    CompleteTask("t2", "charge~undo", 0, null),
                    CompensateTask("t1", "charge"),
                    FinishRun("failed", failure=declined),
                ],
            )
        ],
    ]
