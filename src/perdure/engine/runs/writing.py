"""Writing: what a run decided becomes journal rows, one at a time.

Decisions may run ahead of durability, effects never do: what a row orders is carried out once the
store has it. A refused row means that somebody else owns the run: it is dropped whole, and nothing
more is written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from perdure.codec.journal import encode_onward
from perdure.engine.lane import tell
from perdure.engine.runs.leaving import leave_after, unwritable
from perdure.engine.runs.rows import row_of
from perdure.engine.runs.runners import Runners
from perdure.engine.runs.timers import Timers
from perdure.kernel.actions import Transition
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.protocol import Machine
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.stores.rows import Finish, JournalRow, Outgoing, RunChange

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder

_log = logging.getLogger("perdure.engine")

#: Seconds until what the store was too busy for comes again.
BUSY_PAUSE: Final = 0.05


class Writing:
    """The part of a LiveRun that writes. `seq` is the last journal row that is durable or under
    way; `run` is the snapshot its machine decides on. `leaving` is set by leaving, which may also
    take a row back (`seq`), `settling` as the run is loaded."""

    __slots__ = (
        "_begins", "_busy", "_decided", "_holder", "_pumping", "_read", "_recorded", "_sent",
        "_submitted", "_timers", "dead", "definition", "epoch", "key", "leaving", "machine",
        "run", "run_id", "sending", "seq", "settling", "under_way", "work", "workflow",
    )  # fmt: skip

    # All set by LiveRun.
    _holder: Holder
    key: bytes
    workflow: str
    run_id: str
    definition: Definition[Any, Any]
    machine: Machine
    run: Run
    epoch: int
    seq: int
    #: The attempts of its steps.
    work: Runners
    #: Dropped: it decides and writes nothing any more.
    dead: bool
    #: Loaded with mail that is not recorded yet: nothing is dispatched before.
    settling: bool
    under_way: Sequence[Decided] | None
    _decided: list[Decided]
    #: The decision by which its code began once more, with the messages applied by then, while it
    #: waits to be the first of a row.
    _begins: tuple[Decided, int] | None
    #: For other runs, to go with the next row.
    sending: Sequence[Outgoing]
    #: How the run is let go of, once the row under way is answered.
    leaving: RunChange | None
    #: Something is being decided. The store was busy, and the row is sent again in a moment.
    _pumping: bool
    _busy: bool
    #: Messages applied; applied in durable rows.
    _read: int
    _recorded: int
    #: Made when first needed: many arm none.
    _timers: Timers | None

    # Set with each row that is submitted: the messages it applies, what it says to others.
    _submitted: int
    _sent: Sequence[Outgoing]

    @property
    def read(self) -> int:
        """How many messages durable rows have applied."""
        return self._recorded

    @property
    def timers(self) -> Timers:
        """The run's timers."""
        if self._timers is None:
            self._timers = Timers(self._holder.clock)
        return self._timers

    @property
    def unrecorded(self) -> bool:
        """Whether something was decided, or is to be said, that is not durable yet."""
        return bool(self.under_way or self._decided or self.sending or self._begins)

    @property
    def undecided(self) -> bool:
        """Whether something came that is not decided on yet."""
        raise NotImplementedError

    def pump(self) -> None:
        """Decide on everything that came, then write."""
        raise NotImplementedError

    # ------------------------------------------------------------------ writing

    def _submit(self) -> None:
        holder, transitions = self._holder, self._decided
        if not transitions:
            transitions = self._otherwise()
        read, sending = self._read, self.sending
        live: Any = self
        try:
            row = row_of(holder, live, transitions, read, sending)
        except Exception as error:  # as good as a row that the store cannot write
            unwritable(holder, live, read, error)
            return
        self._decided, self.sending, self._sent = [], (), sending
        self.under_way, self.seq, self._submitted = transitions, row.seq, read
        verdict = holder.commits.write(row, self._answered)
        if verdict == "accepted" and type(row.change) is Finish and len(transitions) == 1:
            self.under_way, self._recorded = None, read
            holder.effects.carry_end(live, transitions[0])
        elif verdict is not None:
            tell(self._answered, verdict)

    def _record(self, made: Onward) -> bool:
        """The same for what most rows hold, where nothing else was decided or is to be said:
        whether it is durable, and what it orders is to be carried out."""
        holder, read, seq = self._holder, self._read, self.seq + 1
        try:
            body, payloads = encode_onward(made)
        except Exception as error:
            live: Any = self
            unwritable(holder, live, read, error)
            return False
        row = JournalRow(
            self.key, seq, made.at, holder.worker, holder.next_commit(), body, self.epoch, read,
            payloads,
        )  # fmt: skip
        self.under_way, self.seq = (made,), seq
        self._sent, self._submitted = (), read
        verdict = holder.commits.write(row, self._answered)
        if verdict == "accepted" and not self.settling:
            self.under_way, self._recorded = None, read
            return True
        if verdict is not None:
            tell(self._answered, verdict)
        return False

    def _otherwise(self) -> list[Decided]:
        """What a row holds when nothing was decided since: the code began anew, or there is
        something to say to others."""
        if self._begins is not None:
            (made, self._read), self._begins = self._begins, None
            return [made]
        self.run.at = at = max(self._holder.clock.now(), self.run.at)
        return [Transition(at)]

    def _answered(self, verdict: Any) -> None:
        live: Any = self
        transitions, self.under_way = self.under_way, None
        if self.dead or transitions is None:
            if verdict in ("accepted", "mine"):
                self._recorded = self._submitted
            leave_after(self._holder, live, verdict)
        elif verdict in ("accepted", "mine"):
            self._recorded = self._submitted
            self._holder.effects.carry_out(live, transitions)
            if self.settling and not self.dead:
                self._settled()
            if live.inbox is not None or live._decided or live.sending or live._begins:
                self.pump()
            elif not live.dead and not live._pumping and live.work.orders:
                self.work.start()
            if live.dead or (work := self.work).waiter is None:
                return
            if not work.orders or work.held or self._holder.stopping:
                work.wake()  # nothing that may start: the runner that waited ends
        elif verdict == "busy":
            self.seq -= 1
            self._decided = [*transitions, *self._decided]
            self.sending = (*self._sent, *self.sending)
            self._busy = True
            self.timers.after(BUSY_PAUSE, self._store_was_busy)
        elif verdict == "refused":
            _log.warning(
                "%s/%s was taken over by another worker: dropped here",
                self.definition.name, self.run_id,
            )  # fmt: skip
            self._holder.drop(live)
        else:
            self.seq -= 1
            unwritable(self._holder, live, self._submitted, verdict)

    def _store_was_busy(self) -> None:
        self._busy = False
        self.pump()

    def _settled(self) -> None:
        """What came while nobody held the run is durable: what it left standing may start."""
        if not (self.undecided or self.unrecorded):
            self.settling = False
            self.work.held = self.run.paused
