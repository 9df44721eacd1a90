"""Assembling: from the steps as declared to the plan the kernel decides by, and to the code that
runs them; the same from what a store keeps of a saga."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from perdure.kernel.plan import GraphPlan
from perdure.model.errors import DefinitionError
from perdure.saga.checking import circles, whole_problems
from perdure.saga.code import FunctionCode, Gate, NoCode, NoGate, StepCode
from perdure.saga.outputs import SagaReaders
from perdure.saga.parts import Part
from perdure.saga.record import (
    Code,
    SagaRecord,
    StepRecord,
    UndoRecord,
    digest_of,
    plan_of,
    record_from,
    source_of,
)


class Built(msgspec.Struct, frozen=True):
    """A saga, whole. `no_gates`: the steps whose `when` is not in this process."""

    record: SagaRecord
    source: bytes
    plan: GraphPlan
    readers: SagaReaders
    no_gates: tuple[str, ...] = ()


def assembled(
    head: SagaRecord, payload: Any, parts: Sequence[Part], problems: Iterable[str]
) -> Built:
    """The saga of these steps. Raises DefinitionError with everything that is wrong."""
    found = [*problems, *whole_problems(parts)]
    record = msgspec.structs.replace(head, steps=tuple(_records(parts)))
    known = {part.name for part in parts}
    if len(known) == len(parts) and all(known.issuperset(s.after) for s in record.steps):
        found += circles(record)
    if found:
        raise DefinitionError(f"saga {head.name}: {'; '.join(found)}", found)
    source = source_of(record)
    return _built(record, source, digest_of(source), payload, parts)


def from_record(source: bytes, digest: str, payload: Any, parts: Sequence[Part]) -> Built:
    """The saga of a canonical text, run by these parts where they have the same names. Raises
    InvalidRequest for a text that cannot be read."""
    return _built(record_from(source), source, digest, payload, parts)


def _built(
    record: SagaRecord, source: bytes, digest: str, payload: Any, parts: Sequence[Part]
) -> Built:
    by_name = {part.name: part for part in parts}
    runs = {step.name: getattr(by_name.get(step.name), "run", None) for step in record.steps}
    readers = SagaReaders(record.name, payload, runs)
    codes = {
        step.name: _code(record.name, step, by_name.get(step.name), readers)
        for step in record.steps
    }
    gone = tuple(name for name, code in codes.items() if isinstance(code.gate, NoGate))
    return Built(record, source, plan_of(record, digest, codes), readers, gone)


def _code(saga: str, step: StepRecord, part: Part | None, readers: SagaReaders) -> Code:
    name = step.name
    gate: Gate | NoGate | None = None
    if step.when:
        asks = None if part is None else part.when
        gate = NoGate() if asks is None else Gate(readers, asks)
    undo: Any = None
    if step.undo is not None:
        undone = None if part is None else part.undo
        undo = (
            NoCode(name, f"the undo of step {name} of saga {saga} is not registered here")
            if part is None or undone is None
            else FunctionCode(
                f"{saga}.{name}~undo", readers, undone, part.undo_retry, is_async=part.undo_is_async
            )
        )
    if step.child is not None:
        return Code(None, undo, gate)
    if part is None or part.child is not None:
        return Code(NoCode(name, f"step {name} of saga {saga} is not registered here"), undo, gate)
    if part.step is not None:
        return Code(StepCode(readers, part.step, part.retry), undo, gate)
    return Code(
        FunctionCode(f"{saga}.{name}", readers, part.run, part.retry, is_async=part.is_async),
        undo,
        gate,
    )


def _records(parts: Sequence[Part]) -> Iterable[StepRecord]:
    before: tuple[str, ...] = ()
    for part in parts:
        step = part.step
        undo = (
            None
            if part.undo is None
            else UndoRecord(part.undo_retry.policy, part.undo_timeout, part.undo_unknown)
        )
        yield StepRecord(
            part.name,
            before if part.after is None else part.after,
            part.retry.policy,
            part.timeout,
            None if step is None else step.name,
            part.child,
            None if step is None or step.queue == "default" else step.queue,
            part.when is not None,
            undo,
        )
        before = (part.name,)
