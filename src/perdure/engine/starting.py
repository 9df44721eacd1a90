"""Starting: a run's first decision is made by whoever starts it.

The kernel is pure, so the starter applies RunStarted itself: a request the definition refuses
is an error to the caller with nothing written, and what is written, the run row and its first
journal row, is written in one transaction.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import msgspec

from perdure.codec.journal import encode_row
from perdure.engine.coding import begun
from perdure.engine.ending import finish_of
from perdure.kernel.actions import Transition
from perdure.kernel.events import RunStarted
from perdure.kernel.protocol import Deps, Machine
from perdure.kernel.run import Run
from perdure.model.carrier import checked_carrier
from perdure.model.definition import Definition
from perdure.model.driving import StartRequest
from perdure.model.errors import InvalidRequest
from perdure.model.names import check_run_id
from perdure.stores.answers import Started
from perdure.stores.rows import NEVER, JournalRow, NewRun, StoredDefinition

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


class Beginning(msgspec.Struct, gc=False):
    """A run about to exist: its row, its machine, and what it decided first. A workflow that is
    owned from birth has taken its first turn, unless it is a child; elsewhere its owner begins
    it."""

    row: NewRun
    machine: Machine
    run: Run
    transitions: list[Transition]


class Starting(msgspec.Struct):
    """A start that is being written. `answer`: the store's, where it came before anybody waited;
    `future`: of whoever waits for it."""

    request: StartRequest
    beginning: Beginning
    answer: Started | Exception | None = None
    future: asyncio.Future[Started] | None = None


def begin(
    request: StartRequest, deps: Deps, *, key: bytes, worker: str, owned: bool, commit: int,
    at_once: bool = True,
) -> Beginning:  # fmt: skip
    """Decide the start. `at_once`: a workflow that is owned takes its first turn with it. Raises
    InvalidId, InvalidRequest (also for an input that is not what the definition asks for); nothing
    is written."""
    definition = request.definition
    check_run_id(request.id)
    definition.check_input(request.input, deps.codec)
    run = Run()
    machine: Machine = definition.machine(run, deps)
    now = deps.now()
    due = now + request.delay
    deadline = None if definition.max_duration is None else due + definition.max_duration
    event = RunStarted(
        request.id, request.start_node, request.input, request.config, _metadata(request), PYTHON,
        deadline, checked_carrier(request.trace),
    )  # fmt: skip
    transition = machine.decide(event)
    if not isinstance(transition, Transition):
        raise InvalidRequest("the start needs an output of a node that cannot have run yet")
    transitions = [transition]
    if owned and at_once and (first_turn := begun(machine)) is not None:
        transitions.append(first_turn)
    body, payloads = encode_row(transitions)
    ending = finish_of(transitions, payloads, definition) if run.status != "running" else None
    first = JournalRow(key, 1, transition.at, worker, commit, body, 0, 0, payloads, ending)
    row = NewRun(
        key, run.definition, request.id, run.version, run.hash, transition.at,
        first, worker if owned else None, NEVER if owned else due, deadline,
        msgspec.json.encode(run.metadata) if run.metadata else b"{}",
        run.status,  # type: ignore[arg-type]
        definition.aliases,
    )  # fmt: skip
    return Beginning(row, machine, run, transitions)


def to_publish(definition: Definition[Any, Any], now: int) -> StoredDefinition:
    """A definition as the store keeps it, so that its runs outlive its file."""
    return StoredDefinition(
        definition.hash,
        definition.name,
        definition.version,
        definition.kind,
        definition.source,
        now,
        definition.max_duration,
    )


def _metadata(request: StartRequest) -> dict[str, str]:
    if not request.metadata:
        return {}
    metadata = dict(request.metadata)
    wrong = [item for item in metadata.items() if not all(isinstance(x, str) for x in item)]
    if wrong:
        raise InvalidRequest(
            f"metadata {wrong[0][0]!r}: {wrong[0][1]!r} is not text: write it as one"
        )
    return metadata
