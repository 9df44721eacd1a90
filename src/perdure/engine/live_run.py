"""LiveRun: a run in memory, held by its owner.

Events enter one at a time and are run to quiescence; what they decide becomes one journal row at
a time. Decisions may run ahead of durability, effects never do: a step is executed only when the
row that dispatches it is durable. A refused row means that somebody else owns the run: it is
dropped whole, and nothing more is written.

Attempts are executed by runner tasks. A runner that finishes a step takes the next one itself,
so that steps in sequence never change tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from perdure.codec.failures import record_failure
from perdure.codec.journal import encode_row
from perdure.engine.dispatcher import Order, Report
from perdure.engine.effects import Effects
from perdure.engine.ending import ends, finish_of
from perdure.engine.handlers.port import StepNotRegistered
from perdure.kernel.actions import Transition
from perdure.kernel.events import NodeFailed
from perdure.kernel.protocol import Decision, Load, Loaded, Machine
from perdure.model.definition import Definition
from perdure.model.durations import SECOND
from perdure.model.errors import StoreError
from perdure.model.failure import FailureRecord
from perdure.stores.port import JournalRow, Release, RunChange, Stall

if TYPE_CHECKING:
    from perdure.engine.shell import Shell

_log = logging.getLogger("perdure.engine")

#: A timer sleeps no longer than this before it looks at the clock again.
LONGEST_SLEEP: Final = 60.0
#: How many steps a run may make without giving the loop to others.
TURN_STEPS: Final = 64
TURN_SECONDS: Final = 0.005
#: Seconds after which an attempt is made again whose task somebody else cancelled.
CANCELLED_PAUSE: Final = 1.0

#: Where a recorded value stands: in memory, or in the payload (seq, n).
Place = Raw | tuple[int, int]


class LiveRun:
    """One run. `seq` is the last journal row that is durable or under way, `last` the time of
    its last transition."""

    __slots__ = (
        "_dead", "_decided", "_decision", "_free", "_idle", "_inbox", "_last", "_leaving",
        "_pumping", "_runners", "_shell", "_under_way", "_waiter", "definition", "effects",
        "epoch", "key", "machine", "orders", "outputs", "run_id", "seq", "timers",
    )  # fmt: skip

    def __init__(
        self,
        shell: Shell,
        key: bytes,
        run_id: str,
        definition: Definition[Any, Any],
        machine: Machine,
        *,
        epoch: int,
        seq: int,
        last: int,
    ) -> None:
        self.key = key
        self.run_id = run_id
        self.definition = definition
        self.machine = machine
        self.epoch = epoch
        self.seq = seq
        #: Attempts that may start now.
        self.orders: deque[Order] = deque()
        #: Outputs recorded before this process held the run.
        self.outputs: Mapping[str, Place] = {}
        self.effects = Effects(self, shell)
        self.timers: set[asyncio.TimerHandle] = set()
        self._shell = shell
        self._last = last
        self._inbox: deque[Any] = deque()
        self._decided: list[Transition] = []
        self._under_way: list[Transition] | None = None
        #: A decision that waits for outputs to be loaded.
        self._decision: Decision | None = None
        self._dead = False
        #: How the run is let go of, once the row under way is answered.
        self._leaving: RunChange | None = None
        self._pumping = False
        #: 1 while a runner is between two attempts: it takes the next order itself.
        self._free = 0
        self._runners: set[asyncio.Task[None]] = set()
        #: Of the runner that waits for the row under way: what wakes it, and its task.
        self._waiter: asyncio.Future[None] | None = None
        self._idle: asyncio.Task[Any] | None = None

    @property
    def dead(self) -> bool:
        """Dropped: it decides and writes nothing any more."""
        return self._dead

    @property
    def runners(self) -> Sequence[asyncio.Task[None]]:
        """The tasks that are executing attempts."""
        return tuple(self._runners)

    # ------------------------------------------------------------------ deciding

    def deliver(self, event: Any) -> None:
        """Take an event; decide, submit, and start what is durable."""
        self._inbox.append(event)
        self.pump()

    def pump(self) -> None:
        """Decide on everything that came, then hand the decisions to the committer."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self._inbox and self._decision is None and not self._dead:
                self._decide(self.machine.apply(self._inbox[0]), None)
            if self._decided and self._under_way is None and not self._dead:
                self._submit(self._decided, None)
        finally:
            self._pumping = False
        if self.orders:
            self.start_orders()

    def _decide(self, decision: Decision, answer: Loaded | Exception | None) -> None:
        try:
            if answer is None:
                asked = next(decision)
            elif isinstance(answer, Loaded):
                asked = decision.send(answer)
            else:
                asked = decision.throw(answer)
        except StopIteration as stop:
            self._inbox.popleft()
            self._take(stop.value)
        except StoreError as error:
            self._try_again_later(error)
        except Exception as error:
            _log.exception("%s/%s cannot go on", self.definition.name, self.run_id)
            self.stall(f"the engine could not apply an event: {error}")
        else:
            self._decision = decision
            self._load(asked)

    def _take(self, transition: Transition) -> None:
        if transition.ignored is None:
            self._decided.append(transition)
            self._last = transition.at
        else:
            _log.info("%s/%s: %s", self.definition.name, self.run_id, transition.ignored)

    def _load(self, asked: Load) -> None:
        """Answer at once from memory, else fetch from the store and go on when it is there."""
        places = {node: self.outputs.get(node) for node in asked.outputs}
        if not any(isinstance(place, tuple) for place in places.values()):
            found = {node: place for node, place in places.items() if isinstance(place, Raw)}
            self._resume(Loaded(found))
            return
        self._shell.spawn(self._fetch(places))

    async def _fetch(self, places: Mapping[str, Place | None]) -> None:
        refs = {node: place for node, place in places.items() if isinstance(place, tuple)}
        found = {node: place for node, place in places.items() if isinstance(place, Raw)}
        try:
            values = await self._shell.store.payloads(self.key, list(refs.values()))
        except Exception as error:
            self._resume(error if isinstance(error, StoreError) else StoreError(str(error)))
            return
        found.update(zip(refs, map(Raw, values), strict=True))
        self._resume(Loaded(found))

    def _resume(self, answer: Loaded | Exception) -> None:
        decision, self._decision = self._decision, None
        if decision is None or self._dead:
            return
        self._decide(decision, answer)
        self.pump()

    def _try_again_later(self, error: Exception) -> None:
        """Transient: the event stays at the front of the inbox."""
        _log.warning("%s/%s: %s; trying again", self.definition.name, self.run_id, error)
        self._decision = _nothing()
        self.after(1.0, self._forget_decision)

    def _forget_decision(self) -> None:
        self._decision = None
        self.pump()

    # ------------------------------------------------------------------ recording

    def _submit(self, transitions: list[Transition], change: RunChange | None) -> None:
        self._decided = []
        self._under_way = transitions
        self.seq += 1
        body, payloads = encode_row(transitions)
        if change is None and ends(transitions):
            change = finish_of(transitions, payloads, self.definition.retention)
        shell = self._shell
        row = JournalRow(
            self.key, self.seq, transitions[-1].at, shell.worker, shell.next_commit(), body,
            self.epoch, 0, payloads, change,
        )  # fmt: skip
        shell.commits.submit(row, self._answered)

    def _answered(self, verdict: Any) -> None:
        transitions, self._under_way = self._under_way, None
        if self._dead or transitions is None:
            self._leave_after(verdict)
        elif verdict in ("accepted", "mine"):
            self.carry_out(transitions)
            self.pump()
            if not self.orders or self._shell.stopping:
                self.wake()
        elif verdict == "busy":
            self.seq -= 1
            self._decided = [*transitions, *self._decided]
            self.after(0.05, self.pump)
        elif verdict == "refused":
            _log.warning(
                "%s/%s was taken over by another worker: dropped here",
                self.definition.name, self.run_id,
            )  # fmt: skip
            self._shell.drop(self)
        else:
            self.seq -= 1
            _log.error("%s/%s cannot be recorded: %s", self.definition.name, self.run_id, verdict)
            self.stall(f"its journal could not be written: {verdict}")

    def carry_out(self, transitions: Sequence[Transition]) -> None:
        """What these transitions, durable now, set going."""
        try:
            self.effects.carry_out(transitions)
        except Exception as error:
            _log.exception("%s/%s cannot go on", self.definition.name, self.run_id)
            self.stall(f"the engine could not carry out what was decided: {error!r}")

    def release(self, ready_at: int) -> None:
        """Let the run go, to be claimed again at `ready_at`."""
        self._leave(Release(ready_at))

    def stall(self, reason: str) -> None:
        """The run cannot go on until somebody acts. It keeps its state and says why."""
        self._leave(Stall(reason))

    def _leave(self, change: RunChange) -> None:
        if self._dead:
            return
        self.die()
        self._leaving = change
        if self._under_way is None:
            self._write_leaving(change)

    def _leave_after(self, verdict: Any) -> None:
        """The last row before the run is let go was answered."""
        if self._leaving is None:
            return
        if verdict == "refused":
            self._shell.drop(self)
            return
        if verdict not in ("accepted", "mine"):
            self.seq -= 1
        self._write_leaving(self._leaving)

    def _write_leaving(self, change: RunChange) -> None:
        shell = self._shell
        at = max(shell.clock.now(), self._last)
        body, payloads = encode_row([Transition(at)])
        row = JournalRow(
            self.key, self.seq + 1, at, shell.worker, shell.next_commit(), body, self.epoch, 0,
            payloads, change,
        )  # fmt: skip
        shell.commits.submit(row, lambda verdict: shell.left(self, verdict))

    # ------------------------------------------------------------------ executing

    def start_orders(self) -> None:
        """See that somebody takes the attempts that may start."""
        if not self.orders or self._dead or self._shell.stopping:
            return
        waiting = 0
        if self._waiter is not None:
            if not self._waiter.done():
                self._waiter.set_result(None)
            waiting = 1
        else:
            waiting = self._free
        for _ in range(len(self.orders) - waiting):
            order = self.orders.popleft()
            task = self._shell.spawn(self._work(order))
            self._runners.add(task)
            task.add_done_callback(self._runners.discard)

    async def _work(self, order: Order | None) -> None:
        """Execute attempts for as long as there is one to take or a row under way."""
        execute, orders = self._shell.dispatcher.execute, self.orders
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None
        steps, started = 0, loop.time()
        while order is not None:
            try:
                report = await execute(order)
            except StepNotRegistered as error:
                self.stall(str(error))
                return
            except (KeyboardInterrupt, SystemExit, asyncio.CancelledError):
                raise
            except BaseException as error:
                # Whatever it is: a run that nobody works on and nobody is told of would hang.
                _log.exception("%s/%s cannot go on", self.definition.name, self.run_id)
                why = record_failure(error)
                self.stall(f"the engine could not run node {order.node}: {why.kind}: {why.message}")
                return
            if self._dead:
                return
            if report is None or task.cancelling():
                self._cancelled(order, report)
                return
            self._inbox.append(report)
            self._free = 1
            self.pump()
            self._free = 0
            order = orders.popleft() if orders else None
            if order is None and self._waits_for_row():
                order = await self._next_order(task)
                started = loop.time()
            steps += 1
            if steps % TURN_STEPS == 0 or loop.time() - started > TURN_SECONDS:
                order = await self._give_way(order)
                started = loop.time()
            if self._shell.stopping and order is not None:
                orders.appendleft(order)
                return

    def _cancelled(self, order: Order, report: Report | None) -> None:
        """The task was cancelled, and not by the engine: by a host that ends, then nothing here
        happens any more, or by the step itself. It must not be used again. An attempt without an
        outcome is made once more, then it has failed."""
        if report is None and order.again and not self._shell.stopping:
            why = "something in this process cancelled the task that the step ran in, twice"
            failure = FailureRecord("CancelledError", why)
            report = NodeFailed(order.task, order.node, order.number, failure)
        if report is not None:
            self.deliver(report)
        else:
            order.again = True
            self.after(CANCELLED_PAUSE, partial(self._once_more, order))

    def _once_more(self, order: Order) -> None:
        self.orders.append(order)
        self.start_orders()

    def _waits_for_row(self) -> bool:
        return self._under_way is not None and self._waiter is None and not self._dead

    async def _give_way(self, order: Order | None) -> Order | None:
        """Let others run, with no attempt in hand: what its steps left behind may cancel this
        task now, and the attempt would be gone with it."""
        if order is not None:
            self.orders.appendleft(order)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.start_orders()
            raise
        return self.orders.popleft() if self.orders else None

    async def _next_order(self, task: asyncio.Task[Any]) -> Order | None:
        """Wait until the row under way is durable, and take what it lets start."""
        while not self.orders and self._under_way is not None and not self._dead:
            self._waiter = asyncio.get_running_loop().create_future()
            self._idle = task
            try:
                await self._waiter
            except asyncio.CancelledError:
                self._waiter = self._idle = None
                self.start_orders()  # one of them may have been meant for this runner
                raise
            finally:
                self._waiter = self._idle = None
        return self.orders.popleft() if self.orders else None

    # ------------------------------------------------------------------ ending

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Call later, unless the run is dropped first."""

        def fire() -> None:
            self.timers.discard(handle)
            if not self._dead:
                call()

        handle = asyncio.get_running_loop().call_later(seconds, fire)
        self.timers.add(handle)

    def at(self, time: int, call: Callable[[], None]) -> None:
        """Call when the engine's clock has reached `time` (µs since the epoch), unless the run
        is dropped first. Sleeps are bounded and the clock is looked at anew after each: a laptop
        that slept, or a clock that was set, is noticed."""
        seconds = (time - self._shell.clock.now()) / SECOND
        if seconds <= 0:
            self.after(0.0, call)
        else:
            self.after(min(seconds, LONGEST_SLEEP), lambda: self._look(time, call))

    def _look(self, time: int, call: Callable[[], None]) -> None:
        if self._shell.clock.now() >= time:
            call()
        else:
            self.at(time, call)

    def wake(self) -> None:
        """Let a runner that waits for the row look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def die(self) -> None:
        """Decide and write nothing any more; running attempts are cancelled, their ends unheard."""
        if self._dead:
            return
        self._dead = True
        self.orders.clear()
        self._inbox.clear()
        self._decided.clear()
        for handle in self.timers:
            handle.cancel()
        self.timers.clear()
        # They refer to one another: until the garbage collector came by, nothing of the run would
        # be freed.
        del self.effects
        self.wake()
        spared = (_current_task(), self._idle)  # one that only waits for a row ends by itself
        for task in self._runners:
            if task not in spared:
                task.cancel()


def _nothing() -> Decision:
    """Stands for a decision that is being waited for."""
    yield Load(())
    return Transition(0)


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
