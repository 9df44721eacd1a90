"""LiveRun: a run in memory, held by its owner.

Events enter one at a time and are run to quiescence; what they decide becomes one journal row at
a time. Decisions may run ahead of durability, effects never do: a step is executed only when the
row that dispatches it is durable. A refused row means that somebody else owns the run: it is
dropped whole, and nothing more is written.

Mail is consumed by being recorded: every message leads to a row whose `read` says so, also when
it was ignored or refused. Only a report of a local attempt that is ignored writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perdure.engine.coding import close
from perdure.engine.effects import Inputs
from perdure.engine.lane import tell
from perdure.engine.leaving import leave_after, stall, unwritable
from perdure.engine.mailbox import Mailbox, event_of
from perdure.engine.reading import fetch_mail, fetch_values
from perdure.engine.rows import onward_row, row_of
from perdure.engine.runners import Runners
from perdure.engine.timers import Timers
from perdure.engine.undecided import noted, undecided
from perdure.engine.values import Place, answer, apart
from perdure.kernel.actions import Ignored, Refused, Transition
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.protocol import Decision, Load, Loaded, Machine
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.model.errors import PerdureError
from perdure.model.status import TERMINAL
from perdure.stores.answers import Mail
from perdure.stores.children import Outgoing
from perdure.stores.rows import Finish, RunChange

if TYPE_CHECKING:
    from perdure.engine.shell import Shell

_log = logging.getLogger("perdure.engine")

_NOTHING: Final[Mapping[str, Place]] = {}

#: Seconds until what the store kept from being decided, and what it was too busy for, comes again.
TRY_AGAIN: Final = 1.0
BUSY_PAUSE: Final = 0.05


class LiveRun:
    """One run. `seq` is the last journal row that is durable or under way; `run` is the snapshot
    its machine decides on. Some fields are set by the modules beside this one, each its own:
    `outputs`, `signals` and `settling` as it is loaded, `fetching` by whoever reads, `parking` by
    parking, `leaving` by leaving, which may also take a row back (`seq`)."""

    __slots__ = (
        "_begins", "_busy", "_decided", "_deciding", "_life", "_mailbox", "_pumping", "_read",
        "_recorded", "_sending", "_sent", "_shell", "_submitted", "_timers", "dead", "definition",
        "epoch", "fetching", "inbox", "inputs", "key", "leaving", "machine", "outputs", "parking",
        "run", "run_id", "seq", "settling", "signals", "under_way", "work", "workflow",
    )  # fmt: skip

    # Set with each row that is submitted: the messages it applies, what it says to others.
    _submitted: int
    _sent: Sequence[Outgoing]

    def __init__(
        self,
        shell: Shell,
        key: bytes,
        workflow: str,
        run_id: str,
        definition: Definition[Any, Any],
        machine: Machine,
        run: Run,
        epoch: int,
        seq: int,
        read: int = 0,
    ) -> None:
        self.key, self.workflow, self.run_id = key, workflow, run_id
        self.definition = definition
        self.machine = machine
        self.run = run
        self.epoch = epoch
        self.seq = seq
        #: Dropped: it decides and writes nothing any more.
        self.dead = False
        #: Being let go: what comes waits for the store's answer.
        self.parking = False
        #: Loaded with mail that is not recorded yet: nothing is dispatched before.
        self.settling = False
        #: Reads of this run that are under way.
        self.fetching = 0
        #: Events, and messages that become events when it is their turn; None while there are
        #: none, as in a run that waits.
        self.inbox: deque[Any] | None = None
        self.under_way: Sequence[Decided] | None = None
        #: Values recorded before this process held the run: outputs by node, signals by id.
        self.outputs: Mapping[str, Place] = _NOTHING
        self.signals: Mapping[str, Place] = _NOTHING
        #: Inputs of tasks that may still be attempted.
        self.inputs: dict[str, Inputs] = {}
        self.work = Runners(self, shell)
        self._shell = shell
        #: Made when first needed: most runs get no mail, and many arm no timer.
        self._mailbox: Mailbox | None = None
        self._timers: Timers | None = None
        self._decided: list[Decided] = []
        #: How often its code had begun, as of these; and the decision by which it began once more,
        #: with the messages applied by then, while it waits to be the first of a row.
        self._life = run.life
        self._begins: tuple[Decided, int] | None = None
        #: For other runs, to go with the next row.
        self._sending: Sequence[Outgoing] = ()
        #: What is being decided on, while that waits for values or, without a decision, to be
        #: tried again. Nothing else is decided meanwhile.
        self._deciding: tuple[Any, Decision | None] | None = None
        #: How the run is let go of, once the row under way is answered.
        self.leaving: RunChange | None = None
        #: `_busy`: the store was, and the row is sent again in a moment.
        self._pumping = self._busy = False
        #: Messages applied; applied in durable rows.
        self._read = self._recorded = read

    @property
    def read(self) -> int:
        """How many messages durable rows have applied."""
        return self._recorded

    @property
    def mailbox(self) -> Mailbox:
        """The run's view of its mail."""
        if self._mailbox is None:
            self._mailbox = Mailbox(self._read)
        return self._mailbox

    @property
    def lacks_mail(self) -> bool:
        """Whether messages are known of that are not here."""
        return self._mailbox is not None and self._mailbox.missing

    @property
    def timers(self) -> Timers:
        """The run's timers."""
        if self._timers is None:
            self._timers = Timers(self._shell.clock)
        return self._timers

    @property
    def runners(self) -> Sequence[asyncio.Task[None]]:
        """The tasks that are executing attempts."""
        return () if self.dead else tuple(task for task, _ in self.work.working)

    @property
    def at_rest(self) -> bool:
        """Whether nothing is under way: only what comes from outside, or a timer, goes on."""
        return (
            not self.unrecorded
            and not self.dead
            and not self.parking
            and not self.inbox
            and self._deciding is None
            and not self.fetching
            and not self.settling
            and not self.lacks_mail
            and not (self._timers is not None and self._timers.momentary)
            and self.work.at_rest
        )

    @property
    def unrecorded(self) -> bool:
        """Whether something was decided, or is to be said, that is not durable yet."""
        return bool(self.under_way or self._decided or self._sending or self._begins)

    # ------------------------------------------------------------------ deciding

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Say something to other runs, with the next row."""
        self._sending = (*self._sending, *outgoing)
        self.pump()

    def deliver(self, event: Any) -> None:
        """Take an event; decide, submit, and start what is durable."""
        self.report(event)
        if not self.dead and len((work := self.work).orders) > work.free:
            work.start()

    def report(self, event: Any) -> None:
        """The same for a runner, which itself takes what may start."""
        if self.inbox is not None or self._pumping or self.parking or self._deciding:
            self._queue((event,))
            self.pump()
        elif self.under_way or self._decided or self._sending or self._begins or self.dead:
            self._pump(event)
        else:
            self._pumping = True  # and nothing is under way
            try:
                try:
                    made = self.machine.decide(event)
                except Exception as error:
                    undecided(self._shell, self, event, error)
                else:
                    if type(made) is Onward:
                        self._submit_onward(made)
                    else:
                        self._heard(event, event, made)
                        if self._decided:
                            self._submit()
            finally:
                self._pumping = False
            now: Any = self  # it changed meanwhile, which types do not say
            if now.inbox is not None or now._decided or now._sending or now._begins:
                self.pump()

    def post(self, messages: Iterable[Mail], *then: Any) -> None:
        """Take messages, in whatever order they come (what is missing is fetched), then events."""
        if self.dead:
            return
        self._queue([*self.mailbox.arrived(messages), *then])
        if self.mailbox.missing:
            fetch_mail(self._shell, self)
        self.pump()

    def _queue(self, events: Sequence[Any]) -> None:
        if events and self.inbox is None:
            self.inbox = deque(events)
        elif self.inbox is not None:
            self.inbox.extend(events)

    def pump(self) -> None:
        """Decide on everything that came, then hand the decisions to the committer."""
        if not self._pumping and not self.parking:
            self._pump(None)

    def _pump(self, first: Any) -> None:
        """The same; `first` stands before what is in the inbox."""
        self._pumping = True
        try:
            if first is not None and not self.dead:
                if (self._decided or self._begins) and self._row_is_full:
                    self.inbox = deque((first, *(self.inbox or ())))
                else:
                    self._decide(first)
            while self.inbox is not None and self._deciding is None and not self.dead:
                if self._row_is_full:
                    break
                self._decide(self._next())
            while self.under_way is None and (self._decided or self._sending or self._begins):
                if self._busy:
                    break
                self._submit()
        finally:
            self._pumping = False
        if self.inbox and not (self.under_way or self._deciding or self._busy):
            # One event a row, and the store has answered already.
            asyncio.get_running_loop().call_soon(self.pump)
        if not self.dead and len((work := self.work).orders) > work.free:
            work.start()

    @property
    def _row_is_full(self) -> bool:
        """Whether what was decided is to have a row of its own."""
        alone = self._begins is not None
        return alone or (bool(self._decided) and self._shell.unwritten.one_by_one(self.key))

    def _keep(self, made: Decided, read: int) -> None:
        """A decision joins the next row. One by which the code began anew begins a row."""
        if self.run.life != self._life:
            self._life = self.run.life
            if self._decided:
                self._begins = (made, read)
                return
        self._decided.append(made)
        self._read = read

    def _decide(self, came: Any) -> None:
        """The turn of an event, or of a message that becomes one."""
        if type(came) is not Mail:
            self._decide_on(came, came)
        elif self.run.status not in TERMINAL:  # what it did not read before it ended stays unread
            try:
                if (why := self._shell.unwritten.why(self.key, came.n)) is not None:
                    raise PerdureError(why)  # refused as a message that does not apply
                event = event_of(came)
            except Exception as error:
                undecided(self._shell, self, came, error)
            else:
                self._decide_on(came, event)

    def _decide_on(self, came: Any, event: Any) -> None:
        try:
            made = self.machine.decide(event)
        except Exception as error:
            undecided(self._shell, self, came, error)
        else:
            self._heard(came, event, made)

    def _heard(self, came: Any, event: Any, made: Decided | Load) -> None:
        """What an event came to."""
        if isinstance(made, Load):
            self._go_on(came, self.machine.apply(event), None)
        elif came is event and made.ignored is None and self.run.life == self._life:
            self._decided.append(made)
        else:
            self._take(came, made)

    def _go_on(self, came: Any, decision: Decision, answer: Loaded | Exception | None) -> None:
        """A decision that something has to be loaded for."""
        try:
            if answer is None:
                asked = next(decision)
            elif isinstance(answer, Loaded):
                asked = decision.send(answer)
            else:
                asked = decision.throw(answer)
        except StopIteration as stop:
            self._take(came, stop.value)
        except Exception as error:
            undecided(self._shell, self, came, error)
        else:
            self._deciding = (came, decision)
            self._load(asked)

    def _next(self) -> Any:
        """What is at the front of the inbox leaves it."""
        inbox = self.inbox
        assert inbox is not None
        first = inbox.popleft()
        if not inbox:
            self.inbox = None
        return first

    def refuse(self, mail: Mail, error: PerdureError) -> None:
        """A message does not apply: that is recorded in its place."""
        self._decided.append(noted(self._shell, self, Refused(str(error))))
        self._read = mail.n

    def decide_later(self, came: Any) -> None:
        """The store kept this from being decided."""
        self._deciding = (came, None)
        self.timers.after(TRY_AGAIN, self._decide_again)

    def _decide_again(self) -> None:
        waiting, self._deciding = self._deciding, None
        if waiting is not None:
            self._pump(waiting[0])

    def _take(self, came: Any, transition: Decided) -> None:
        if type(came) is Mail:
            if transition.ignored is not None:
                transition = noted(self._shell, self, Ignored(transition.ignored))
            self._keep(transition, came.n)
        elif transition.ignored is None:
            self._keep(transition, self._read)
        else:
            self.not_heard(came, transition.ignored)
            self._shell.effects.arm_again(self, came)

    def not_heard(self, event: Any, reason: str) -> None:
        """A local report counts for nothing: log and feed only (D-38)."""
        _log.info("%s/%s: %s", self.definition.name, self.run_id, reason)
        self._shell.ignored(self, event, reason)

    # ------------------------------------------------------------------ reading

    def _load(self, asked: Load) -> None:
        """Answer at once from memory, else fetch from the store and go on when it is there."""
        if apart(asked, self.outputs, self.signals):
            fetch_values(self._shell, self, asked)
        else:
            self.resume(answer(asked, self.outputs, self.signals, {}))

    def resume(self, made: Loaded | Exception) -> None:
        """What was asked for is there, or cannot be had."""
        waiting, self._deciding = self._deciding, None
        if waiting is None or waiting[1] is None or self.dead:
            return
        self._go_on(waiting[0], waiting[1], made)
        self.pump()

    # ------------------------------------------------------------------ recording

    def _submit(self) -> None:
        shell, transitions = self._shell, self._decided
        if not transitions:
            transitions = self._otherwise()
        read, sending = self._read, self._sending
        try:
            row = row_of(shell, self, transitions, read, sending)
        except Exception as error:  # as good as a row that the store cannot write
            unwritable(shell, self, read, error)
            return
        self._decided, self._sending, self._sent = [], (), sending
        self.under_way, self.seq, self._submitted = transitions, row.seq, read
        verdict = shell.commits.write(row, self._answered)
        if verdict == "accepted" and type(row.change) is Finish and len(transitions) == 1:
            self.under_way, self._recorded = None, read
            shell.effects.carry_end(self, transitions[0])
        elif verdict is not None:
            tell(self._answered, verdict)

    def _submit_onward(self, made: Onward) -> None:
        """The same for what most rows hold, where nothing else was decided or is to be said."""
        shell = self._shell
        try:
            row = onward_row(shell, self, made, self._read)
        except Exception as error:
            unwritable(shell, self, self._read, error)
            return
        self._sent, self.under_way = (), (made,)
        self.seq, self._submitted = row.seq, row.read
        verdict = shell.commits.write(row, self._answered)
        if verdict == "accepted" and not self.settling:
            self.under_way, self._recorded = None, row.read
            shell.effects.carry_onward(self, made)
        elif verdict is not None:
            tell(self._answered, verdict)

    def _otherwise(self) -> list[Decided]:
        """What a row holds when nothing was decided since: the code began anew, or there is
        something to say to others."""
        if self._begins is not None:
            (made, self._read), self._begins = self._begins, None
            return [made]
        self.run.at = at = max(self._shell.clock.now(), self.run.at)
        return [Transition(at)]

    def _answered(self, verdict: Any) -> None:
        transitions, self.under_way = self.under_way, None
        if self.dead or transitions is None:
            if verdict in ("accepted", "mine"):
                self._recorded = self._submitted
            leave_after(self._shell, self, verdict)
        elif verdict in ("accepted", "mine"):
            self._recorded = self._submitted
            self._shell.effects.carry_out(self, transitions)
            if self.settling and not self.dead:
                self._settled()
            now: Any = self  # it changed meanwhile, which types do not say
            if now.inbox is not None or now._decided or now._sending or now._begins:
                self.pump()
            elif not now.dead and not now._pumping and now.work.orders:
                self.work.start()
            if now.dead or (work := self.work).waiter is None:
                return
            if not work.orders or work.held or self._shell.stopping:
                work.wake()  # nothing that may start: the runner that waited ends
        elif verdict == "busy":
            self.seq -= 1
            self._decided = [*transitions, *self._decided]
            self._sending = (*self._sent, *self._sending)
            self._busy = True
            self.timers.after(BUSY_PAUSE, self._store_was_busy)
        elif verdict == "refused":
            _log.warning(
                "%s/%s was taken over by another worker: dropped here",
                self.definition.name, self.run_id,
            )  # fmt: skip
            self._shell.drop(self)
        else:
            self.seq -= 1
            unwritable(self._shell, self, self._submitted, verdict)

    def _store_was_busy(self) -> None:
        self._busy = False
        self.pump()

    def _settled(self) -> None:
        """What came while nobody held the run is durable: what it left standing may start."""
        if not self.inbox and self._deciding is None and not self.unrecorded:
            self.settling = False
            self.work.held = self.run.paused

    # ------------------------------------------------------------------ ending

    def stall(self, reason: str) -> None:
        """See leaving.stall."""
        stall(self._shell, self, reason)

    def die(self) -> None:
        """Decide and write nothing any more; running attempts are cancelled, their ends unheard."""
        if self.dead:
            return
        self.dead = True
        self.inbox = None
        if self._decided:
            self._decided.clear()
        self._begins = None
        self._sending = ()
        if self._timers is not None:
            self._timers.close()
        self.work.end()
        # They refer to one another: only the garbage collector would free them.
        del self.work
        if self.machine.may_ask:  # as all code may
            close(self.machine, f"{self.workflow}/{self.run_id}")
