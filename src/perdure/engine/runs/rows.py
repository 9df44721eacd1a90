"""Rows: what of a run becomes durable together, with all that rides on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from perdure.codec.journal import encode_row
from perdure.engine.runs.children import outgoing
from perdure.engine.runs.ending import finish_of
from perdure.kernel.actions import CancelChild, Continued, StartChild, Transition
from perdure.kernel.onward import Decided, Onward
from perdure.stores.rows import Continue, JournalRow, Outgoing, RunChange

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

_ASKING: Final = frozenset((StartChild, CancelChild))


def row_of(
    holder: Holder,
    live: LiveRun,
    transitions: Sequence[Decided],
    read: int,
    sending: Sequence[Outgoing],
) -> JournalRow:
    """The run's next row. Raises whatever keeps it from being written, ever."""
    body, payloads = encode_row(transitions)
    change: RunChange | None = None
    if live.run.status != "running":
        change = finish_of(transitions, payloads, live.definition)
    out: Sequence[Outgoing] = sending
    machine = live.machine
    if machine.may_ask:
        if live.run.life > 1:
            change = change or continue_of(transitions[0])
        if asks(transitions):
            out = (*sending, *outgoing(holder, live, transitions))
    return JournalRow(
        live.key, live.seq + 1, transitions[-1].at, holder.worker, holder.next_commit(), body,
        live.epoch, read, payloads, change, out,
    )  # fmt: skip


def leaving_row(holder: Holder, live: LiveRun, read: int, change: RunChange) -> JournalRow:
    """The row that lets the run go, and says nothing else."""
    at = max(holder.clock.now(), live.run.at)
    body, payloads = encode_row([Transition(at)])
    return JournalRow(
        live.key, live.seq + 1, at, holder.worker, holder.next_commit(), body, live.epoch, read,
        payloads, change,
    )  # fmt: skip


def asks(transitions: Sequence[Decided]) -> bool:
    """Whether any of these may ask something of other runs."""
    for transition in transitions:
        if type(transition) is Onward:
            continue
        if not _ASKING.isdisjoint(map(type, transition.actions)):
            return True
    return False


def continue_of(transition: Decided) -> Continue | None:
    """The change of a row that this transition begins: it may be the journal's new beginning."""
    for action in reversed(transition.actions):
        if type(action) is Continued:
            return Continue(action.deadline)
    return None
