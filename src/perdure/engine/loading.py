"""Loading: from a claimed run's journal to a LiveRun that goes on where the last row ended.

The journal is folded from its base; values that stand apart are left where they are until they
are asked for. Every pending task is dispatched again, with the attempt it was at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from perdure.codec.journal import decode_row
from perdure.engine.effects import Inputs
from perdure.engine.live_run import LiveRun, Place
from perdure.kernel.actions import (
    CompleteTask,
    CreateTask,
    DispatchTask,
    OpenRun,
    RetryTask,
)
from perdure.kernel.fold import fold_transition
from perdure.kernel.protocol import Machine
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.model.errors import PerdureError, StoreError
from perdure.stores.port import Claim, LoadedRun

if TYPE_CHECKING:
    from perdure.engine.shell import Shell


class Recorded(msgspec.Struct):
    """A journal read back: the snapshot, and where the values it names stand."""

    run: Run
    seq: int = 0
    outputs: dict[str, Place] = {}
    inputs: dict[str, Inputs] = {}
    due: dict[str, int] = {}
    #: A large input or config of the run: where it stands until it is fetched.
    opened: dict[str, tuple[int, int]] = {}


def read_journal(loaded: LoadedRun) -> Recorded:
    """Fold a run's rows. Raises PerdureError for rows this version cannot read and for rows that
    are missing: read again they would be no better."""
    recorded = Recorded(Run(), loaded.run.base_seq - 1)
    for row in loaded.journal:
        recorded.seq += 1
        if row.seq != recorded.seq:
            raise PerdureError(f"row {recorded.seq} of its journal is missing")
        try:
            transitions = decode_row(row.body)
        except StoreError as error:
            raise PerdureError(f"row {row.seq} of its journal: {error}") from error
        for transition in transitions:
            for action in transition.actions:
                _note(recorded, row.seq, action)
            fold_transition(recorded.run, transition)
    return recorded


def _note(recorded: Recorded, seq: int, action: Any) -> None:
    kind = type(action)
    if kind is CreateTask:
        place = _place(seq, action.input, action.input_ref)
        if place is not None:
            recorded.inputs[action.node] = Inputs(place, action.secrets)
    if kind is CreateTask or kind is CompleteTask:
        place = _place(seq, action.output, action.output_ref)
        if place is not None:
            recorded.outputs[action.node] = place
    elif kind is DispatchTask or kind is RetryTask:
        recorded.due[action.node] = action.not_before
    elif kind is OpenRun:
        for name in ("input", "config"):
            n = getattr(action, f"{name}_ref")
            if n is not None:
                recorded.opened[name] = (seq, n)


def _place(seq: int, value: msgspec.Raw | None, ref: int | None) -> Place | None:
    if ref is not None:
        return (seq, ref)
    # A value decoded from a row is a view of it: a copy does not keep the whole row in memory.
    return None if value is None else value.copy()


async def bring_to_life(shell: Shell, claim: Claim, definition: Definition[Any, Any]) -> LiveRun:
    """Load a claimed run and start what is pending. Raises StoreError to try again, any other
    PerdureError where that would not help."""
    loaded = await shell.store.load(claim.key)
    recorded = read_journal(loaded)
    run = recorded.run
    if run.status != "running":
        raise PerdureError(f"its journal says that the run is {run.status}, its row: running")
    for name, place in recorded.opened.items():
        (value,) = await shell.store.payloads(claim.key, [place])
        setattr(run, name, msgspec.Raw(value))
    machine = cast("Machine", definition.machine(run, shell.deps))
    live = LiveRun(
        shell, claim.key, loaded.run.id, definition, machine, epoch=claim.epoch,
        seq=recorded.seq, last=run.at,
    )  # fmt: skip
    live.outputs = recorded.outputs
    shell.enter(live, run)
    for node, state in run.nodes.items():
        if state.status == "pending":
            live.effects.inputs[node] = recorded.inputs[node]
            live.effects.dispatch(node, state.task, state.attempt, recorded.due.get(node, 0))
    live.start_orders()
    return live
