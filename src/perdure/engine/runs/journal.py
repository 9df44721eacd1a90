"""A journal read back: the snapshot at its last row, and where the values stand that it names.

The journal is folded from its base. Values that stand apart from their rows are left where they
are until somebody asks for them: most runs go on without them. Nothing of the run is begun here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from perdure.codec.journal import decode_row
from perdure.engine.runs.coding import this_life
from perdure.engine.runs.launches import Inputs
from perdure.engine.runs.values import Place
from perdure.kernel.actions import (
    BufferSignal,
    Claimed,
    CompleteTask,
    Continued,
    CreateTask,
    DispatchTask,
    OpenRun,
    ReopenRun,
    ResolveWait,
    RetryTask,
    SetPaused,
)
from perdure.kernel.fold import fold_transition
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.run import Run
from perdure.model.errors import PerdureError, StoreError
from perdure.stores.answers import LoadedRun

Read = Callable[[bytes, tuple[int, int]], Awaitable[bytes]]

#: Actions whose output becomes their node's.
_WITH_OUTPUT: Final = frozenset({CreateTask, CompleteTask, ResolveWait})


class Recorded(msgspec.Struct):
    """A journal read back: the snapshot, and where the values it names stand. `read`: how many
    messages it has applied."""

    run: Run
    seq: int = 0
    read: int = 0
    outputs: dict[str, Place] = {}
    signals: dict[str, Place] = {}
    inputs: dict[str, Inputs] = {}
    due: dict[str, int] = {}
    #: Nodes whose attempt came while the run was paused, which held it back ever since.
    held: set[str] = set()
    #: Nodes whose attempt a worker had that died: whether it had begun it, no clock can say.
    lost: set[str] = set()
    #: A large input or config of the run: where it stands until it is fetched.
    opened: dict[str, tuple[int, int]] = {}
    #: The last row that records nothing but a retry, or that the run changed hands since.
    retried: int = 0
    #: What was recorded, where code is to run again from it.
    transitions: list[Decided] = []


def read_journal(loaded: LoadedRun) -> Recorded:
    """Fold a run's rows. Raises PerdureError for rows this version cannot read and for rows that
    are missing: read again they would be no better."""
    recorded = Recorded(Run(), loaded.run.base_seq - 1)
    for row in loaded.journal:
        recorded.seq += 1
        if row.seq != recorded.seq:
            raise PerdureError(f"row {recorded.seq} of its journal is missing")
        recorded.read = row.read
        try:
            transitions = decode_row(row.body)
        except StoreError as error:
            raise PerdureError(f"row {row.seq} of its journal: {error}") from error
        if row.seq == loaded.run.base_seq:
            transitions = this_life(transitions)
        recorded.transitions += transitions
        for transition in transitions:
            if type(transition) is Onward:
                _note_onward(recorded, row.seq, transition)
            else:
                _note(recorded, row.seq, transition.actions)
            fold_transition(recorded.run, transition)
    for stored in recorded.inputs.values():
        if isinstance(stored.place, msgspec.Raw):
            stored.place = stored.place.copy()
    return recorded


def _note_onward(recorded: Recorded, seq: int, onward: Onward) -> None:
    """What `_note` makes of its three actions."""
    node, follower = onward.node, onward.next
    recorded.inputs.pop(node, None)
    if (place := _place(seq, onward.output, onward.output_ref)) is not None:
        recorded.outputs[node] = place
    at = onward.input if onward.input_ref is None else (seq, onward.input_ref)
    recorded.inputs[follower] = Inputs(at, {})
    recorded.due[follower] = 0
    recorded.lost.discard(follower)
    if recorded.run.paused:
        recorded.held.add(follower)


def _note(recorded: Recorded, seq: int, actions: Sequence[Any]) -> None:
    inputs, outputs = recorded.inputs, recorded.outputs
    for action in actions:
        kind = type(action)
        if kind is CreateTask:
            place = action.input if action.input_ref is None else (seq, action.input_ref)
            if action.status == "pending":
                inputs[action.node] = Inputs(place, action.secrets)
        elif kind is DispatchTask or kind is RetryTask:
            recorded.due[action.node] = action.not_before
            recorded.lost.discard(action.node)
            if recorded.run.paused:
                recorded.held.add(action.node)
        elif kind is CompleteTask:
            inputs.pop(action.node, None)
        elif kind not in _WITH_OUTPUT:
            _note_rarer(recorded, seq, action)
        if kind in _WITH_OUTPUT:
            place = _place(seq, action.output, action.output_ref)
            if place is not None:
                outputs[action.node] = place


def _note_rarer(recorded: Recorded, seq: int, action: Any) -> None:
    kind = type(action)
    if kind is SetPaused:
        recorded.held.clear()
    elif kind is BufferSignal:
        place = _place(seq, action.payload, action.payload_ref)
        if place is not None:
            recorded.signals[action.signal] = place
    elif kind is Continued:
        for places in (recorded.inputs, recorded.outputs, recorded.due, recorded.signals):
            places.clear()
        recorded.opened.clear()
        _note_context(recorded, seq, action)
    elif kind is OpenRun:
        _note_context(recorded, seq, action)
    elif kind is ReopenRun:
        for node in action.reset:
            for kept in (recorded.inputs, recorded.outputs, recorded.due):
                kept.pop(node, None)
        _note_context(recorded, seq, action)
        recorded.retried = seq
    elif kind is Claimed:
        recorded.lost |= recorded.due.keys() - recorded.held
        if recorded.retried == seq - 1:
            recorded.retried = seq


def _note_context(recorded: Recorded, seq: int, action: OpenRun | ReopenRun | Continued) -> None:
    """Input and config of the run: in the snapshot, or apart until they are fetched."""
    for name in ("input", "config"):
        n = getattr(action, f"{name}_ref")
        if n is not None:
            recorded.opened[name] = (seq, n)
        elif getattr(action, name) is not None:
            recorded.opened.pop(name, None)


def _place(seq: int, value: msgspec.Raw | None, ref: int | None) -> Place | None:
    if ref is not None:
        return (seq, ref)
    # A value decoded from a row is a view of it: a copy does not keep the whole row in memory.
    return None if value is None else value.copy()


async def fetch_context(shell_read: Read, recorded: Recorded, key: bytes) -> None:
    """Put a large input or config into the snapshot."""
    for name, place in recorded.opened.items():
        setattr(recorded.run, name, msgspec.Raw(await shell_read(key, place)))
