"""Loading: from a claimed run's journal to a LiveRun that goes on where the last row ended.

The journal is folded from its base; values that stand apart are left where they are until they
are asked for. Unread mail is applied first: it may take back what is pending. Then every pending
task is dispatched again, with the attempt it was at, and every timer is armed.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from perdure.codec.journal import decode_row
from perdure.engine.children import ask_when_due
from perdure.engine.coding import begin_at, recall, since_continued
from perdure.engine.effects import Effects, Inputs
from perdure.engine.live_run import LiveRun
from perdure.engine.values import Place
from perdure.kernel.actions import (
    BufferSignal,
    CompleteTask,
    Continued,
    CreateTask,
    DispatchTask,
    OpenRun,
    ReopenRun,
    ResolveWait,
    RetryTask,
    Transition,
)
from perdure.kernel.fold import fold_transition
from perdure.kernel.protocol import Machine
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.model.errors import PerdureError, StoreError
from perdure.stores.port import LONE_CRASHES, Claim, LoadedRun

Read = Callable[[bytes, tuple[int, int]], Awaitable[bytes]]

if TYPE_CHECKING:
    from perdure.engine.shell import Shell


_log = logging.getLogger("perdure.engine")

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
    #: A large input or config of the run: where it stands until it is fetched.
    opened: dict[str, tuple[int, int]] = {}
    #: What was recorded, where code is to run again from it.
    transitions: list[Transition] = []


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
            transitions = since_continued(transitions)
        recorded.transitions += transitions
        for transition in transitions:
            _note(recorded, row.seq, transition.actions)
            fold_transition(recorded.run, transition)
    for stored in recorded.inputs.values():
        if isinstance(stored.place, msgspec.Raw):
            stored.place = stored.place.copy()
    return recorded


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
    if kind is BufferSignal:
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


async def bring_to_life(
    shell: Shell, claim: Claim, definition: Definition[Any, Any]
) -> LiveRun | None:
    """Load a claimed run and start what is pending; None when the claim does not hold any more.
    Raises StoreError to try again, any other PerdureError where that would not help."""
    loaded = await shell.store.load(claim.key)
    if (loaded.run.owner, loaded.run.epoch) != (shell.worker, claim.epoch):
        # Taken over meanwhile: the rows just read stand behind the fence that should stop us.
        _log.warning("%s/%s is another worker's now", definition.name, loaded.run.id)
        return None
    recorded = read_journal(loaded)
    run = recorded.run
    if run.status != "running":
        raise PerdureError(f"its journal says that the run is {run.status}, its row: running")
    if claim.crashes:
        # One death is what a run is made to survive; several in a row may be the run's doing.
        _log.log(
            logging.WARNING if claim.crashes >= LONE_CRASHES else logging.INFO,
            "%s/%s: its owners died %d time(s) in a row without getting on",
            definition.name, loaded.run.id, claim.crashes,
        )  # fmt: skip

    async def read(key: bytes, place: tuple[int, int]) -> bytes:
        (value,) = await shell.store.payloads(key, [place])
        return value

    await fetch_context(read, recorded, claim.key)
    machine = cast("Machine", definition.machine(run, shell.deps))
    await recall(
        machine, recorded.transitions, recorded.outputs,
        lambda places: shell.store.payloads(claim.key, places),
    )  # fmt: skip
    live = LiveRun(
        shell, claim.key, loaded.run.id, definition, machine, run,
        epoch=claim.epoch, seq=recorded.seq, read=recorded.read,
    )  # fmt: skip
    live.outputs, live.signals = recorded.outputs, recorded.signals
    live.settling = bool(loaded.mail)
    live.work.held = live.settling or run.paused
    shell.enter(live, run)
    _go_on(shell.effects, live, recorded, loaded.run.not_before)
    begin_at(live, loaded.run.not_before)
    live.post(loaded.mail)
    if not live.dead:
        ask_when_due(shell, live, loaded.mail, loaded.run.not_before)
    if not live.dead:
        live.work.start()
    return live


def _go_on(effects: Effects, live: LiveRun, recorded: Recorded, not_before: int) -> None:
    """Dispatch what is pending, arm what waits. A delayed start waits for its time, although
    somebody may have sent it something before."""
    for node, state in recorded.run.nodes.items():
        if state.status == "pending":
            live.inputs[node] = recorded.inputs[node]
            if state.child is not None:  # another run's end is waited for, or its turn to be asked
                if when := state.not_before or state.wake_at:
                    live.inputs[node].timed = state.wake_at is not None
                    # Decided with a start that was delayed: it counts from then.
                    late = 0 if state.attempt else max(0, not_before - state.first_due)
                    effects.wait(live, node, state.task, when, late)
                continue
            due = max(recorded.due.get(node, 0), not_before)
            effects.dispatch(live, node, state.task, state.attempt, due)
        elif state.wake_at is not None:
            effects.wait(live, node, state.task, state.wake_at)
