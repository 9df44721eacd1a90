"""The golden journal of format 2: steps that followed one another, each one record."""

from __future__ import annotations

from msgspec import Raw

from perdure.kernel.actions import (
    CompleteTask,
    CreateTask,
    DispatchTask,
    FinishRun,
    RetryTask,
    Transition,
)
from perdure.kernel.onward import Onward
from perdure.model.failure import FailureRecord
from tests.replay.opening import AT, Journal, opened

_LARGE = Raw(b'"%b"' % (b"x" * 5000))


def onwards() -> Journal:
    """A graph of five nodes: one is tried again, one gives what stands apart, which the next is
    given; the last two rows hold more than one event."""
    return [
        [
            Transition(
                AT,
                [
                    opened(),
                    CreateTask("t1", "a", "pending", Raw(b'{"step":"work"}')),
                    DispatchTask("t1", "a"),
                ],
            )
        ],
        [Onward(AT + 1, "t1", "a", "t2", "b", Raw(b'{"id":"ch_1"}'), Raw(b'{"step":"work"}'))],
        [Transition(AT + 2, [RetryTask("t2", "b", 0, FailureRecord("Busy", "later"), AT + 9)])],
        [Onward(AT + 10, "t2", "b", "t3", "c", Raw(b"null"), None, 1, "mail", 5, "0a1b")],
        [Onward(AT + 11, "t3", "c", "t4", "d", _LARGE, _LARGE)],
        [
            Onward(AT + 12, "t4", "d", "t5", "e", _LARGE, Raw(b"[]")),
            Transition(
                AT + 13,
                [
                    CompleteTask("t5", "e", 0, Raw(b"1")),
                    FinishRun("completed", output=Raw(b'{"e":1}')),
                ],
            ),
        ],
    ]
