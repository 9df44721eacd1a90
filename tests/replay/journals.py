"""The golden journals: what each file in this folder holds, as the actions it was made from.

`python -m tests.replay.journals` writes files that are missing and never touches one that is
there: a journal once written is read for ever. When an action gains a field or a new one comes,
add a journal that uses it under a new name; existing names keep their content.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Raw

from perdure.codec.journal import encode_row
from perdure.kernel.actions import (
    AnyAction,
    BeginRun,
    BufferSignal,
    CancelChild,
    CancelTasks,
    ChildFound,
    Claimed,
    CompleteTask,
    ConsumeSignal,
    Continued,
    CreateTask,
    DispatchTask,
    FailTask,
    FinishRun,
    Ignored,
    Patched,
    Refused,
    ReopenRun,
    RequestStop,
    ResolveWait,
    RetryTask,
    SetPaused,
    StartChild,
    Transition,
)
from perdure.kernel.onward import Onward
from perdure.model.failure import FailureRecord
from tests.replay.onwards import onwards
from tests.replay.opening import AT, Journal, opened
from tests.replay.undoing import undone, untold

FOLDER = Path(__file__).parent
SHAPES = FOLDER / "shapes.json"


def order() -> Journal:
    """A graph of two nodes that succeeds, one row an event."""
    return [
        [
            Transition(
                AT,
                [
                    opened(
                        input=Raw(b'{"amount":12}'),
                        config=Raw(b'{"currency":"EUR"}'),
                        metadata={"tenant": "a"},
                        deadline=AT + 60_000_000,
                    ),
                    CreateTask("t1", "charge", "pending", Raw(b'{"amount":12}')),
                    DispatchTask("t1", "charge", queue="cards"),
                ],
            )
        ],
        [
            Transition(
                AT + 1,
                [
                    CompleteTask("t1", "charge", 0, Raw(b'{"id":"ch_1"}')),
                    CreateTask("t2", "choose", "completed", output=Raw(b"{}"), branches=("ship",)),
                    CreateTask("t3", "refuse", "skipped"),
                    CreateTask(
                        "t4",
                        "ship",
                        "pending",
                        Raw(b'{"key":"{{ secret.k }}"}'),
                        secrets={"/key": "k"},
                    ),
                    DispatchTask("t4", "ship"),
                ],
            )
        ],
        [
            Transition(
                AT + 2,
                [
                    CompleteTask("t4", "ship", 0, Raw(b"null")),
                    FinishRun("completed", Raw(b'{"ship":null}')),
                ],
            )
        ],
    ]


def failure() -> Journal:
    """A retry, a failure for good, a node that could not be resolved; two events in one row."""
    busy = FailureRecord("Busy", "try later", retry_after=2_000_000)
    declined = FailureRecord("card.declined", "nö 💳", permanent=True, details={"code": [1, None]})
    return [
        [Transition(AT, [opened(), CreateTask("t1", "charge", "pending", Raw(b"[]"))])],
        [
            Transition(AT + 5, [RetryTask("t1", "charge", 0, busy, AT + 2_000_005)]),
            Transition(AT + 5, ignored="a report of another attempt", signal_delivered=False),
        ],
        [
            Transition(
                AT + 2_000_006,
                [
                    FailTask("t1", "charge", 1, declined),
                    CreateTask("t2", "log", "failed", failure=FailureRecord("Template", "no x")),
                    FinishRun("failed", failure=declined),
                ],
            )
        ],
    ]


def takeover() -> Journal:
    """A dead worker's run goes on at another, with an attempt that waits for its time."""
    return [
        [Transition(AT, [opened(), CreateTask("t1", "wait", "pending", Raw(b"{}"))])],
        [Transition(AT + 9, [Claimed("0195f2a0-0000-7000-8000-000000000000")])],
        [
            Transition(AT + 10, [DispatchTask("t1", "wait", 2, AT + 30)], signal_delivered=True),
            Transition(
                AT + 31,
                [CompleteTask("t1", "wait", 2, Raw(b"1.5")), FinishRun("canceled")],
            ),
        ],
    ]


def large() -> Journal:
    """Input, config, output and the run's output stand apart."""
    big = [Raw(b'"%b"' % (letter * 5000)) for letter in (b"a", b"b", b"c", b"d")]
    return [
        [Transition(AT, [opened(input=big[0], config=big[1])])],
        [
            Transition(
                AT + 1,
                [
                    CreateTask("t1", "n", "pending", big[2]),
                    CreateTask("t2", "m", "completed", output=big[2]),
                    CompleteTask("t1", "n", 0, big[3]),
                    FinishRun("completed", big[3]),
                ],
            )
        ],
    ]


def waits() -> Journal:
    """A timer, a signal that came early, one that came never; messages that changed nothing."""
    late = FailureRecord("workflow.timeout", "no signal 'paid' came within 1h", permanent=True)
    return [
        [
            Transition(
                AT,
                [
                    opened(),
                    CreateTask("t1", "rest", "waiting", wake_at=AT + 60_000_000),
                    CreateTask(
                        "t2", "payment", "waiting", wake_at=AT + 90_000_000, awaited_signal="paid"
                    ),
                    CreateTask("t3", "answer", "waiting", awaited_signal="answer"),
                ],
            )
        ],
        [
            Transition(AT + 1, [BufferSignal("m1", "later", Raw(b'{"n":[1,null]}'))]),
            Transition(AT + 1, [BufferSignal("m2", "bare")]),
            Transition(AT + 2, [Ignored("it is not paused")]),
            Transition(AT + 3, [Refused("InvalidRequest: the run waits for no such thing")]),
        ],
        [
            Transition(
                AT + 60_000_000,
                [
                    ResolveWait("t1", "rest", "completed", Raw(b"{}")),
                    CreateTask("t4", "more", "completed", output=Raw(b'{"n":[1,null]}')),
                    ConsumeSignal("m1", "more"),
                ],
            ),
            Transition(
                AT + 60_000_001,
                [ResolveWait("t3", "answer", "completed", Raw(b"null"))],
                signal_delivered=True,
            ),
        ],
        [
            Transition(
                AT + 90_000_000,
                [
                    ResolveWait("t2", "payment", "failed", failure=late),
                    FinishRun("failed", failure=late),
                ],
            )
        ],
    ]


def reopened() -> Journal:
    """Paused, unpaused, cancelled, and retried from a node with another input and config."""
    reason = FailureRecord("workflow.canceled", "cancelled", permanent=True)
    return [
        [Transition(AT, [opened(), CreateTask("t1", "charge", "pending", Raw(b"1"))])],
        [
            Transition(AT + 1, [SetPaused(paused=True)]),
            Transition(AT + 2, [SetPaused(paused=False)]),
        ],
        [
            Transition(
                AT + 3,
                [
                    CancelTasks(reason, ("charge",)),
                    CancelTasks(reason, ("ship",), "canceled"),
                    FinishRun("canceled", failure=reason),
                ],
            )
        ],
        [
            Transition(
                AT + 4,
                [
                    ReopenRun(
                        "4", "a0b1", ("charge", "ship"), Raw(b'{"amount":13}'),
                        config=Raw(b"{}"), deadline=AT + 120_000_000,
                    ),
                    CreateTask("t2", "charge", "pending", Raw(b"2")),
                    DispatchTask("t2", "charge"),
                ],
            )
        ],
    ]  # fmt: skip


def large_waits() -> Journal:
    """A kept signal's payload, what a wait gave, and a reopened run's input stand apart."""
    big = [Raw(b'"%b"' % (letter * 5000)) for letter in (b"e", b"f", b"g")]
    return [
        [
            Transition(
                AT,
                [
                    BufferSignal("m1", "report", big[0]),
                    ResolveWait("t1", "wait", "completed", big[1]),
                    ReopenRun("3", "9f2c", (), big[2], config=big[0]),
                ],
            )
        ]
    ]


def workflow() -> Journal:
    """A workflow with a guarded change, a child that it owns and lets go of, one that it spawned,
    and a cancel; retried, and cancelled again."""
    stop = FailureRecord("workflow.canceled", "enough", permanent=True)
    return [
        [Transition(AT, [opened(), BeginRun(), Patched("new-way")])],
        [
            Transition(
                AT + 1,
                [
                    CreateTask("t1", "pay", "pending", Raw(b"5"), digest="0" * 32),
                    StartChild("t1", "pay", "pay", "order/order-1/pay"),
                    CreateTask("t2", "tell", "pending"),
                    StartChild("t2", "tell", "tell", "order/order-1/tell", detached=True),
                ],
            )
        ],
        [
            Transition(AT + 2, [ChildFound("t1", "pay", True)]),
            Transition(
                AT + 2,
                [
                    ChildFound("t2", "tell", False),
                    CompleteTask("t2", "tell", output=Raw(b'"order/order-1/tell"')),
                ],
            ),
        ],
        [
            Transition(
                AT + 3,
                [
                    RequestStop(stop),
                    CancelChild("t1", "pay", "pay", "order/order-1/pay"),
                    CancelTasks(stop, ("pay",), "canceled"),
                    FinishRun("canceled", failure=stop),
                ],
            )
        ],
        [Transition(AT + 4, [ReopenRun("3", "9f2c", ("pay",), kept=2)])],
    ]


def continued() -> Journal:
    """A workflow that goes on as new, paused, with a kept signal; its values stand apart."""
    big = Raw(b'"' + b"x" * 5000 + b'"')
    return [
        [Transition(AT, [opened(), BeginRun()])],
        [
            Transition(
                AT + 1,
                [
                    Continued(
                        "order", "order-1", "3", "9f2c", "3.11", big, config=big,
                        metadata={"tenant": "a"}, deadline=AT + 60_000_000, paused=True, life=3,
                    ),
                    BufferSignal("m1", "news", Raw(b"1")),
                    BeginRun(),
                ],
            )
        ],
    ]  # fmt: skip


def children() -> Journal:
    """A graph whose CHILD nodes were tried again, waited for a time, and drained."""
    broke = FailureRecord("Boom", "it broke")
    stop = FailureRecord("workflow.canceled", "canceled because node a failed", permanent=True)
    return [
        [
            Transition(
                AT,
                [
                    opened(),
                    CreateTask("t1", "pay", "pending", Raw(b"5")),
                    StartChild("t1", "pay", "payment", "p-1", wake_at=AT + 60_000_000),
                    CreateTask("t2", "tell", "pending"),
                    StartChild("t2", "tell", "news", "order/order-1/tell"),
                ],
            ),
            Transition(AT + 1, [ChildFound("t1", "pay", False)]),
            Transition(AT + 1, [ChildFound("t2", "tell", True, typed=True)]),
            Transition(AT + 2, [RetryTask("t1", "pay", 0, broke, AT + 1_000_000)]),
        ],
        [
            Transition(AT + 1_000_000, [StartChild("t1", "pay", "payment", "p-1~2", attempt=1)]),
            Transition(
                AT + 1_000_001,
                [
                    CancelChild("t1", "pay", "payment", "p-1~2", attempt=1),
                    FailTask("t1", "pay", 1, broke),
                    CancelChild("t2", "tell", "news", "order/order-1/tell", awaited=True),
                ],
            ),
        ],
        [
            Transition(
                AT + 1_000_002,
                [
                    CancelTasks(stop, ("tell",), "canceled"),
                    FinishRun("failed", failure=broke),
                ],
            )
        ],
    ]


def begun_elsewhere() -> Journal:
    """A workflow that was started by its name, where its code was not: its deadline came with its
    beginning. Its call may be tried five times."""
    return [
        [Transition(AT, [opened()])],
        [
            Transition(
                AT + 1,
                [
                    BeginRun(AT + 60_000_000),
                    CreateTask("t1", "pay", "pending", Raw(b"5")),
                    DispatchTask("t1", "pay", attempts=5),
                ],
            )
        ],
    ]


def traced() -> Journal:
    """A workflow that was started within a trace, and goes on as new in it."""
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    return [
        [Transition(AT, [opened(trace=trace), BeginRun()])],
        [
            Transition(
                AT + 1,
                [Continued("order", "order-1", "3", "9f2c", "3.11", trace=trace), BeginRun()],
            )
        ],
    ]


def taken_back() -> Journal:
    """A workflow that takes back what it did: the call says of what."""
    closed = FailureRecord("closed", "no ship today", permanent=True)
    return [
        [
            Transition(
                AT,
                [
                    opened(),
                    BeginRun(),
                    CreateTask("t1", "charge", "pending", Raw(b"12")),
                    DispatchTask("t1", "charge"),
                ],
            )
        ],
        [
            Transition(
                AT + 1,
                [
                    CompleteTask("t1", "charge", 0, Raw(b'"c1"')),
                    CreateTask("t2", "ship", "pending"),
                    DispatchTask("t2", "ship"),
                ],
            ),
            Transition(
                AT + 2,
                [
                    FailTask("t2", "ship", 0, closed),
                    CreateTask("t3", "refund", "pending", Raw(b'"c1"'), undoes="charge"),
                    DispatchTask("t3", "refund"),
                ],
            ),
        ],
        [
            Transition(
                AT + 3,
                [
                    CompleteTask("t3", "refund", 0, Raw(b"null")),
                    FinishRun("failed", failure=closed),
                ],
            )
        ],
    ]


JOURNALS = {
    "order-v1": order,
    "failure-v1": failure,
    "takeover-v1": takeover,
    "large-v1": large,
    "waits-v1": waits,
    "reopened-v1": reopened,
    "large-waits-v1": large_waits,
    "workflow-v1": workflow,
    "continued-v1": continued,
    "children-v1": children,
    "begun-elsewhere-v1": begun_elsewhere,
    "traced-v1": traced,
    "taken-back-v1": taken_back,
    "undone-v1": undone,
    "untold-v1": untold,
    "onwards-v2": onwards,
}


class Line(msgspec.Struct, omit_defaults=True):
    """A row in a file: its body as text, its payloads in base 64."""

    body: str
    payloads: list[str] = []


def rows_of(name: str) -> list[tuple[bytes, list[bytes]]]:
    """The rows of a golden file."""
    lines = (FOLDER / f"{name}.jsonl").read_bytes().splitlines()
    found = [msgspec.json.decode(line, type=Line) for line in lines]
    return [(line.body.encode(), [base64.b64decode(p) for p in line.payloads]) for line in found]


def written(journal: Journal) -> bytes:
    """The file of a journal, as today's code would write it."""
    lines = []
    for row in journal:
        body, payloads = encode_row(row)
        apart = [base64.b64encode(p).decode() for p in payloads]
        lines.append(msgspec.json.encode(Line(body.decode(), apart)))
    return b"\n".join(lines) + b"\n"


def shapes() -> dict[str, Any]:
    """Every record of the format with its fields, types and defaults."""
    kinds = {kind.__struct_config__.tag: kind for kind in get_args(AnyAction)}
    kinds["(failure)"], kinds["(onward)"] = FailureRecord, Onward
    return {
        str(tag): {
            field.encode_name: _type(field) + ("" if field.required else f" = {_default(field)}")
            for field in msgspec.structs.fields(kind)
        }
        for tag, kind in sorted(kinds.items())
    }


def _type(field: msgspec.structs.FieldInfo) -> str:
    kind = field.type
    return kind.__name__ if type(kind) is type else str(kind).replace("typing.", "")


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory()


def main() -> None:
    """Write what is missing, and the shapes of today."""
    for name, journal in JOURNALS.items():
        file = FOLDER / f"{name}.jsonl"
        if not file.exists():
            file.write_bytes(written(journal()))
    text = msgspec.json.format(msgspec.json.encode(shapes()), indent=2)
    SHAPES.write_bytes(text + b"\n")


if __name__ == "__main__":
    main()
