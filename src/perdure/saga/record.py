"""SagaRecord: a saga without its code, as every process can read it.

What is written here is the definition's source and identity: which steps there are, what each
waits for, and under which policies it is done and undone. The functions stay where they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, Literal

import msgspec

from perdure.kernel.plan import GraphPlan, PlannedNode, PlannedUndo
from perdure.model.durations import SECOND
from perdure.model.errors import InvalidRequest
from perdure.model.graph import CHILD, SAGA, Edge, GraphShape
from perdure.model.policy import NO_RETRY, RetryPolicy

OnFailure = Literal["drain", "continue", "cancel"]
UndoOn = Literal["failure", "timeout", "cancel"]

RETENTION: Final = 30 * 86_400 * SECOND
#: Digits of the hash that name a version nobody gave a name (D-36).
_DIGITS: Final = 12


class UndoRecord(msgspec.Struct, frozen=True):
    """How a step is undone. `timeout` in µs per attempt, 0 = no limit."""

    retry: RetryPolicy = NO_RETRY
    timeout: int = 0
    unknown: bool = True


class StepRecord(msgspec.Struct, frozen=True):
    """One step. `after`: the steps it waits for. `timeout` in µs per attempt, 0 = no limit.
    `step`: the name of the declared step that it runs, if it runs one; `child`: that of the
    definition of which it asks for a run. `when`: whether its
    payload is asked before it runs."""

    name: str
    after: tuple[str, ...] = ()
    retry: RetryPolicy = NO_RETRY
    timeout: int = 0
    step: str | None = None
    child: str | None = None
    queue: str | None = None
    when: bool = False
    undo: UndoRecord | None = None


class SagaRecord(msgspec.Struct, frozen=True):
    """A saga. Times in µs; `max_duration` None = no end. `version`: the label given, or "".
    `started_by`: the names of the classes of events that start it; `aliases`: names that it had
    before. Both for processes without its code that emit events."""

    name: str
    steps: tuple[StepRecord, ...] = ()
    version: str = ""
    description: str = ""
    max_duration: int | None = None
    retention: int = RETENTION
    on_failure: OnFailure = "drain"
    undo_on: tuple[UndoOn, ...] = ("cancel", "failure", "timeout")
    started_by: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


class Code(msgspec.Struct, frozen=True):
    """What runs one step: each goes to its handler as it is. `gate`: its `when`."""

    run: Any
    undo: Any = None
    gate: Any = None


def source_of(record: SagaRecord) -> bytes:
    """The canonical text: the same for the same saga in every process. What is as it is unless
    said is left out, so that what may be said one day changes no saga of today."""
    return msgspec.json.encode(_said(record), order="sorted")


def _said(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_said(item) for item in value]
    if not isinstance(value, msgspec.Struct):
        return value
    # Compared by value: msgspec's own omission looks at identity, which is chance for numbers.
    return {
        field.name: _said(given)
        for field in msgspec.structs.fields(value)
        if (given := getattr(value, field.name)) != field.default
    }


def record_from(source: bytes) -> SagaRecord:
    """What a canonical text holds. Raises InvalidRequest for what is none."""
    try:
        return msgspec.json.decode(source, type=SagaRecord)
    except msgspec.DecodeError as error:
        raise InvalidRequest(f"this is no saga that this version can read: {error}") from None


def label_of(record: SagaRecord, digest: str) -> str:
    """The version's label."""
    return record.version or digest[:_DIGITS]


def digest_of(source: bytes) -> str:
    """The definition's identity."""
    return sha256(source).hexdigest()


class NoInput:
    """The spec of steps: what they read is not rendered, they ask for it."""

    constant = True
    secrets: dict[str, str] = {}  # noqa: RUF012  never changed

    def render(self, scope: object, /) -> None:
        """Nothing."""


class ChildSpec:
    """Of a step that asks for another run: it gets the payload."""

    constant = False
    secrets: dict[str, str] = {}  # noqa: RUF012  never changed

    def __init__(self, workflow: str) -> None:
        self._workflow = workflow

    def render(self, scope: Mapping[str, Any], /) -> dict[str, Any]:
        """See kernel.children."""
        asked, payload = {"workflow": self._workflow}, scope["input"]
        return asked if payload is None else {**asked, "input": payload}


_NO_INPUT: Final = NoInput()


def shape_of(record: SagaRecord) -> GraphShape:
    """The steps and what each waits for."""
    types = {step.name: SAGA if step.child is None else CHILD for step in record.steps}
    return GraphShape(types, [Edge(a, step.name) for step in record.steps for a in step.after])


def plan_of(record: SagaRecord, digest: str, codes: dict[str, Code]) -> GraphPlan:
    """The plan by which the kernel decides; `codes`: by step, what runs it."""
    shape = shape_of(record)
    plan = GraphPlan(
        name=record.name,
        version=label_of(record, digest),
        hash=digest,
        shape=shape,
        nodes={step.name: _planned(step, shape, codes[step.name]) for step in record.steps},
        choices={},
        entry=shape.entries[0] if len(shape.entries) == 1 else None,
        all_entries=True,
        typed=True,
        on_failure=record.on_failure,
        undo_on=frozenset(record.undo_on),
    )
    # What each step gave is what a run gives, and not only the last ones'.
    msgspec.structs.force_setattr(plan, "leaves", tuple(shape.types))
    return plan


def _planned(step: StepRecord, shape: GraphShape, code: Code) -> PlannedNode:
    undo = step.undo
    return PlannedNode(
        id=step.name,
        type=shape.types[step.name],
        spec=_NO_INPUT if step.child is None else ChildSpec(step.child),
        retry=step.retry,
        timeout=step.timeout,
        queue=step.queue,
        workflow=step.child,
        code=code.run,
        gate=code.gate,
        undo=None
        if undo is None
        else PlannedUndo(undo.retry, undo.timeout, undo.unknown, code.undo),
    )
