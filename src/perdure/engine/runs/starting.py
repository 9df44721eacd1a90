"""Starting: a run's first decision is made by whoever starts it.

The kernel is pure, so the starter applies RunStarted itself: a request the definition refuses
is an error to the caller with nothing written, and what is written, the run row and its first
journal row, is written in one transaction.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from perdure.codec.journal import encode_row
from perdure.engine.runs.coding import begun, close
from perdure.engine.runs.ending import finish_of
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
    it. `at_a_node`: nothing was decided but that it begins at one worker node. While the row is
    being written, `future` is of whoever waits for that; `answer`: the store's, where it came
    before anybody did."""

    row: NewRun
    definition: Definition[Any, Any]
    machine: Machine
    run: Run
    transitions: list[Transition]
    at_a_node: bool = False
    answer: Started | Exception | None = None
    future: asyncio.Future[Started] | None = None

    def close(self) -> None:
        """It comes to nothing here: its code, which may have begun, does not go on."""
        close(self.machine, f"{self.row.definition}/{self.row.id}")


def begin(
    request: StartRequest, deps: Deps, *, key: bytes, worker: str, owned: bool, commit: int,
    at_once: bool = True,
) -> Beginning:  # fmt: skip
    """Decide the start. `at_once`: a workflow that is owned takes its first turn with it. Raises
    InvalidId, InvalidRequest (also for an input that is not what the definition asks for); nothing
    is written."""
    definition, id, input, now = request.definition, request.id, request.input, deps.now()
    check_run_id(id)
    definition.check_input(input, deps.codec)
    due, longest = now + request.delay, definition.max_duration
    deadline = None if longest is None else due + longest
    event = RunStarted(
        id, request.start_node, input, request.config,
        _checked_metadata(request.metadata) if request.metadata else {}, PYTHON, deadline,
        None if request.trace is None else checked_carrier(request.trace),
    )  # fmt: skip
    straight = definition.straight_start(event, deps, now)
    if straight is not None:
        run, machine, made = straight
    else:
        run, machine, made = _asked(definition, event, deps)
    transitions = [made]
    if machine.may_ask and owned and at_once and (first_turn := begun(machine)) is not None:
        transitions.append(first_turn)
    body, payloads = encode_row(transitions)
    at, status = made.at, run.status
    ending = finish_of(transitions, payloads, definition) if status != "running" else None
    row = NewRun(
        key, run.definition, id, run.version, run.hash, at,
        JournalRow(key, 1, at, worker, commit, body, 0, 0, payloads, ending),
        worker if owned else None, NEVER if owned else due, deadline,
        msgspec.json.encode(event.metadata) if event.metadata else b"{}", status,
        definition.aliases,
    )  # fmt: skip
    at_a_node = straight is not None and len(made.actions) > 1
    return Beginning(row, definition, machine, run, transitions, at_a_node)


def _asked(
    definition: Definition[Any, Any], event: RunStarted, deps: Deps
) -> tuple[Run, Machine, Transition]:
    """A run, its machine, and what that decides on the start."""
    run = Run()
    machine: Machine = definition.machine(run, deps)
    started = machine.decide(event)
    if not isinstance(started, Transition):
        raise InvalidRequest("the start needs an output of a node that cannot have run yet")
    return run, machine, started


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


def _checked_metadata(given: Mapping[str, str]) -> dict[str, str]:
    metadata = dict(given)
    wrong = [item for item in metadata.items() if not all(isinstance(x, str) for x in item)]
    if wrong:
        raise InvalidRequest(
            f"metadata {wrong[0][0]!r}: {wrong[0][1]!r} is not text: write it as one"
        )
    return metadata
