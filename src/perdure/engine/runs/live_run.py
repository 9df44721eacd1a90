"""LiveRun: a run in memory, held by its owner.

Events enter one at a time and are run to quiescence; what they decide is recorded (writing.py).

Mail is consumed by being recorded: every message leads to a row whose `read` says so, also when
it was ignored or refused. Only a report of a local attempt that is ignored writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perdure.engine.runs.coding import close
from perdure.engine.runs.launches import Inputs
from perdure.engine.runs.leaving import stall
from perdure.engine.runs.mailbox import Mailbox, event_of
from perdure.engine.runs.reading import fetch_mail, fetch_values
from perdure.engine.runs.runners import Runners
from perdure.engine.runs.undecided import noted, undecided
from perdure.engine.runs.values import Place, answer, apart
from perdure.engine.runs.writing import Writing
from perdure.kernel.actions import Ignored, Refused
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.protocol import Decision, Load, Loaded, Machine
from perdure.kernel.run import Run
from perdure.model.definition import Definition
from perdure.model.errors import PerdureError
from perdure.model.status import TERMINAL
from perdure.stores.answers import Mail
from perdure.stores.rows import Outgoing

if TYPE_CHECKING:
    from perdure.engine.runs.at_once import AtOnce
    from perdure.engine.runs.holder import Holder

_log = logging.getLogger("perdure.engine")

_NOTHING: Final[Mapping[str, Place]] = {}

#: Seconds until what the store kept from being decided comes again.
TRY_AGAIN: Final = 1.0


class LiveRun(Writing):
    """One run. Some fields are set by the modules beside this one, each its own: `outputs` and
    `signals` as it is loaded, `fetching` by whoever reads, `parking` by parking."""

    __slots__ = (
        "_deciding", "_life", "_mailbox", "fetching", "inbox", "inputs", "outputs", "parking",
        "signals",
    )  # fmt: skip

    def __init__(
        self,
        holder: Holder,
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
        self._holder = holder
        self.key, self.workflow, self.run_id = key, workflow, run_id
        self.definition, self.machine, self.run = definition, machine, run
        self.epoch, self.seq = epoch, seq
        self.dead = self.settling = self._pumping = self._busy = False
        self.under_way = self._begins = self.leaving = self._timers = None
        self._decided, self.sending = [], ()
        self._read = self._recorded = read
        #: Being let go: what comes waits for the store's answer.
        self.parking = False
        #: Reads of this run that are under way.
        self.fetching = 0
        #: Events, and messages that become events when it is their turn; None while there are
        #: none, as in a run that waits.
        self.inbox: deque[Any] | None = None
        #: Values recorded before this process held the run: outputs by node, signals by id.
        self.outputs: Mapping[str, Place] = _NOTHING
        self.signals: Mapping[str, Place] = _NOTHING
        #: Inputs of tasks that may still be attempted.
        self.inputs: dict[str, Inputs] = {}
        self.work = Runners(self, holder)
        #: Made when first needed: most runs get no mail.
        self._mailbox: Mailbox | None = None
        #: How often its code had begun, as of what was decided.
        self._life = run.life
        #: What is being decided on, while that waits for values or, without a decision, to be
        #: tried again. Nothing else is decided meanwhile.
        self._deciding: tuple[Any, Decision | None] | None = None

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
    def undecided(self) -> bool:
        """Whether something came that is not decided on yet."""
        return bool(self.inbox) or self._deciding is not None

    # ------------------------------------------------------------------ deciding

    def send(self, outgoing: Iterable[Outgoing]) -> None:
        """Say something to other runs, with the next row."""
        self.sending = (*self.sending, *outgoing)
        self.pump()

    def deliver(self, event: Any) -> None:
        """Take an event; decide, submit, and start what is durable."""
        self.report(event)
        if not self.dead and len((work := self.work).orders) > work.free:
            work.start()

    def report(self, event: Any, at_once: AtOnce | None = None) -> None:
        """The same for a runner, which itself takes what may start; `at_once`: here, as long as
        nothing has to be waited for."""
        if self.inbox is not None or self._pumping or self.parking or self._deciding:
            self._queue((event,))
            self.pump()
        elif self.under_way or self._decided or self.sending or self._begins or self.dead:
            self._pump(event)
        else:
            self._pumping = True  # and nothing is under way
            try:
                self._go_on_from(event, at_once)
            finally:
                self._pumping = False
            now: Any = self  # it changed meanwhile, which types do not say
            if now.inbox is not None or now._decided or now.sending or now._begins:
                self.pump()

    def _go_on_from(self, event: Any, at_once: AtOnce | None) -> None:
        """Decide on this and, where a step follows and ends at once, on how that ended."""
        ended: Any = event
        while True:
            try:
                made = self.machine.decide(ended)
            except Exception as error:
                undecided(self._holder, self, ended, error)
                return
            if type(made) is not Onward:
                self._heard(ended, ended, made)
                if self._decided:
                    self._submit()
                return
            if not self._record(made):
                return
            try:
                ended = False if at_once is None else at_once.attempt(self, made)
            except Exception as error:
                self._holder.effects.failed(self, error)
                return
            if ended is False:
                self._holder.effects.carry_onward(self, made)
            if type(ended) is bool:
                return

    def post(self, messages: Iterable[Mail], *then: Any) -> None:
        """Take messages, in whatever order they come (what is missing is fetched), then events."""
        if self.dead:
            return
        self._queue([*self.mailbox.arrived(messages), *then])
        if self.mailbox.missing:
            fetch_mail(self._holder, self)
        self.pump()

    def _queue(self, events: Sequence[Any]) -> None:
        if events and self.inbox is None:
            self.inbox = deque(events)
        elif self.inbox is not None:
            self.inbox.extend(events)

    def pump(self) -> None:
        """Decide on everything that came, then write what was decided."""
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
            while self.under_way is None and (self._decided or self.sending or self._begins):
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
        return alone or (bool(self._decided) and self._holder.unwritten.one_by_one(self.key))

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
                if (why := self._holder.unwritten.why(self.key, came.n)) is not None:
                    raise PerdureError(why)  # refused as a message that does not apply
                event = event_of(came)
            except Exception as error:
                undecided(self._holder, self, came, error)
            else:
                self._decide_on(came, event)

    def _decide_on(self, came: Any, event: Any) -> None:
        try:
            made = self.machine.decide(event)
        except Exception as error:
            undecided(self._holder, self, came, error)
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
            undecided(self._holder, self, came, error)
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
        self._decided.append(noted(self._holder, self, Refused(str(error))))
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
                transition = noted(self._holder, self, Ignored(transition.ignored))
            self._keep(transition, came.n)
        elif transition.ignored is None:
            self._keep(transition, self._read)
        else:
            self.not_heard(came, transition.ignored)
            self._holder.effects.arm_again(self, came)

    def not_heard(self, event: Any, reason: str) -> None:
        """A local report counts for nothing: log and feed only (D-38)."""
        _log.info("%s/%s: %s", self.definition.name, self.run_id, reason)
        self._holder.ignored(self, event, reason)

    # ------------------------------------------------------------------ reading

    def _load(self, asked: Load) -> None:
        """Answer at once from memory, else fetch from the store and go on when it is there."""
        if apart(asked, self.outputs, self.signals):
            fetch_values(self._holder, self, asked)
        else:
            self.resume(answer(asked, self.outputs, self.signals, {}))

    def resume(self, made: Loaded | Exception) -> None:
        """What was asked for is there, or cannot be had."""
        waiting, self._deciding = self._deciding, None
        if waiting is None or waiting[1] is None or self.dead:
            return
        self._go_on(waiting[0], waiting[1], made)
        self.pump()

    # ------------------------------------------------------------------ ending

    def stall(self, reason: str) -> None:
        """See leaving.stall."""
        stall(self._holder, self, reason)

    def die(self) -> None:
        """Decide and write nothing any more; running attempts are cancelled, their ends unheard."""
        if self.dead:
            return
        self.dead = True
        self.inbox = None
        if self._decided:
            self._decided.clear()
        self._begins = None
        self.sending = ()
        if self._timers is not None:
            self._timers.close()
        self.work.end()
        # They refer to one another: only the garbage collector would free them.
        del self.work
        if self.machine.may_ask:  # as all code may
            close(self.machine, f"{self.workflow}/{self.run_id}")
