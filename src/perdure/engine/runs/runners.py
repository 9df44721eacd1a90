"""Runners: the tasks that execute one live run's attempts.

Attempts begin in a task that is everybody's (`advance`, see shared_runner); one that waits keeps
it, and the task is a runner of the run from then on (`heard`). A runner that finishes an attempt
takes the next one itself, so that steps in sequence never change tasks. No attempt starts while the
engine stops, the run is paused, or this worker's lease may be over, nor while the run is being let
go: it waits in `orders`.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from perdure.codec.failures import record_failure
from perdure.engine.attempts.ends import ENDINGS, Report
from perdure.engine.attempts.observed import OPENTELEMETRY, observed
from perdure.engine.attempts.orders import Order
from perdure.engine.attempts.stepping import Waiting
from perdure.engine.handlers.port import StepNotRegistered
from perdure.engine.runs.at_once import AtOnce, Begun
from perdure.engine.runs.for_row import ForRow
from perdure.engine.runs.halting import halts
from perdure.engine.runs.shared_runner import TURN_SECONDS, is_spoilt, spoils
from perdure.kernel.events import AttemptGivenUp, NodeFailed
from perdure.model.failure import FailureRecord
from perdure.model.status import TERMINAL

if TYPE_CHECKING:
    from perdure.engine.attempts.part import Part
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

_log = logging.getLogger("perdure.engine")

_NONE: Final[frozenset[tuple[str, int]]] = frozenset()

#: How many steps a run may make without giving the loop to others.
TURN_STEPS: Final = 64
#: Seconds after which an attempt is made again whose task somebody else cancelled.
CANCELLED_PAUSE: Final = 1.0


class Runners:
    """`orders`: attempts that may start now. `held`: the run is paused."""

    __slots__ = (
        "_holder", "_kept", "_live", "before", "free", "held", "orders", "passing", "queued",
        "waiter",
    )  # fmt: skip

    def __init__(self, live: LiveRun, holder: Holder) -> None:
        #: A list: it is nearly always empty, and a run has no more attempts than nodes.
        self.orders: list[Order] = []
        self.held = False
        #: Whether the shared runner is to look here.
        self.queued = False
        #: Attempts (task, number) that an earlier process may have begun, where that matters.
        self.before = _NONE
        #: What each task is at that is this run's; and the one that is everybody's.
        self._kept: dict[asyncio.Task[None], Order] = {}
        self.passing: tuple[asyncio.Task[None], Order] | None = None
        self._live = live
        self._holder = holder
        #: 1 while a runner is between two attempts: it takes the next order itself.
        self.free = 0
        #: The runner that waits for the row under way.
        self.waiter: ForRow | None = None

    @property
    def _idle(self) -> asyncio.Task[None] | None:
        return None if self.waiter is None else self.waiter.task

    @property
    def at_rest(self) -> bool:
        """Whether no attempt is under way, and none could start."""
        return not (self._kept or self.passing) and (self.held or not self.orders)

    @property
    def working(self) -> Sequence[tuple[asyncio.Task[None], Order]]:
        """The attempts that have begun, and the tasks they are made in."""
        kept, passing = tuple(self._kept.items()), self.passing
        return kept if passing is None else (*kept, passing)

    @property
    def is_alone(self) -> bool:
        """Whether at most one attempt is, or is about to be, under way."""
        return len(self._kept) + len(self.orders) + (self.passing is not None) <= 1

    def start(self) -> None:
        """See that somebody takes the attempts that may start."""
        orders, waiter = self.orders, self.waiter
        if waiter is not None and orders:
            waiter.wake()  # its runner takes the first
        if len(orders) <= (self.free if waiter is None else 1):
            return  # whoever is between two attempts takes them
        live, holder = self._live, self._holder
        if not (self.held or live.dead or live.parking or holder.stopping):
            holder.shared_runner.take(self)

    def wake(self) -> None:
        """Let a runner that waits for the row look again."""
        if self.waiter is not None:
            self.waiter.wake()

    def stop(self, nodes: Collection[str]) -> None:
        """Attempts of these nodes are not wanted any more: those under way are asked to stop."""
        for order in [order for order in self.orders if order.node in nodes]:
            self.orders.remove(order)
        for task, order in self.working:
            if order.node in nodes and task is not self._idle and not order.unwanted:
                order.unwanted = True
                task.cancel()

    def stop_queued(self) -> None:
        """The engine stops: what waits for a thread does not begin any more."""
        for task, order in self.working:
            if order.queued is not None and order.queued.take_back():
                task.cancel()

    def halt(self) -> None:
        """The run is to stop, and how its attempts end matters: those under way are asked to, and
        are not given up. A `def` cannot be cancelled, and is awaited once a thread has it."""
        nodes = self._live.run.nodes
        for task, order in self.working:
            state = nodes.get(order.node)
            if (
                task is not self._idle
                and not (order.halted or order.unwanted)
                and state is not None
                and (state.task, state.attempt) == (order.task, order.number)
                and state.status == "pending"  # else it has been told of
            ):
                order.halted = True
                queued = order.queued
                if getattr(order.step, "is_async", True) or (queued and queued.take_back()):
                    task.cancel()

    def end(self) -> None:
        """The run left memory: every attempt is asked to stop, its end unheard."""
        if self.orders:
            self.orders.clear()
        if self.waiter is not None:
            self.wake()
        if self._kept:  # what passes is under way just now, in this very task
            spared = (_current_task(), self._idle)  # one that only waits for a row ends by itself
            for task in self._kept:
                if task not in spared:
                    task.cancel()

    def ended(self, task: asyncio.Task[None]) -> None:
        """A task in which attempts of this run were made has ended."""
        order, passing, waited = self._let_go(task), self.passing, True
        if passing is not None and passing[0] is task:
            order, self.passing, waited = passing[1], None, False
        if order is not None and order.halted and not order.unwanted and task.cancelled():
            self._given_up(order, begun=waited or order.again or order.before)

    def advance(
        self, task: asyncio.Task[None], until: float, time: Callable[[], float]
    ) -> Waiting | None:
        """Execute attempts in this task for as long as there is one to take that does not wait,
        and others need not have the loop (`until`). What does wait, if one did: the task is this
        run's then."""
        live, holder, orders = self._live, self._holder, self.orders
        telemetry, dispatcher = holder.telemetry, holder.dispatcher
        unseen = telemetry is None and OPENTELEMETRY not in sys.modules
        if holder.lease_over < until:  # noqa: PLR1730  # a call for each run
            until = holder.lease_over
        made: Any
        begun: Begun | None = None
        left = 0 if live.parking else TURN_STEPS
        while left > 0 or begun is not None:
            if begun is not None:
                order = begun.order
            elif not orders or self.held or holder.stopping:  # one that is dead has no orders
                break
            elif (now := time()) >= until:
                if now >= holder.lease_over:
                    holder.held_back = True
                else:
                    holder.shared_runner.take(self)
                break
            else:
                left -= 1
                order = orders.pop(0)
                self.passing = task, order
            try:
                if begun is not None:
                    made = begun.outcome()
                elif unseen:
                    made = dispatcher.begin(order)
                else:
                    made = observed(telemetry, dispatcher, order, live.run.trace)
            except (*ENDINGS, asyncio.CancelledError):
                raise
            except BaseException as error:
                self.cannot(order, error)
                break
            if type(made) is Waiting:
                self._kept[task], self.passing = order, None
                made.whose, made.task = self, task
                return made
            # Half of is_spoilt() is enough: a cancel stays in a task until that waits.
            if made is None or live.dead or spoils(task):
                self._useless(order, made)
                break
            self.free = 1
            try:
                if unseen:
                    at_once = AtOnce(holder, task, left, until, time)
                    live.report(made, at_once)
                    left, begun = at_once.left, at_once.begun
                else:
                    live.report(made)
            finally:
                self.free = 0
        else:
            if orders and not live.parking:
                holder.shared_runner.take(self)  # others have their turn
        self.passing = None
        return None

    def heard(self, attempt: Waiting) -> Part | None:
        """An attempt has ended that waited, and kept its task: what is next there."""
        live, task, report = self._live, attempt.task, attempt.report
        # is_spoilt(), without a call for each step.
        if report is None or live.dead or task.cancelling() or spoils(task):
            self._useless(attempt.order, report)
            return None
        self.free = 1
        try:
            live.deliver(report)
        finally:
            self.free = 0
        return self.next_part(task)

    def next_part(self, task: asyncio.Task[None]) -> Part | None:
        """What is next in a task that is this run's."""
        live = self._live
        if self.orders:
            last, time = self._kept.pop(task), asyncio.get_running_loop().time
            try:
                waits = self.advance(task, time() + TURN_SECONDS, time)
            except BaseException:  # it ends the process, or that is caught somewhere
                self.ended(task)
                raise
            if waits is not None:
                if self.orders:
                    self.start()  # they do not wait for this one
                return waits
            if self.orders or is_spoilt(task):
                return None
            self._kept[task] = last
        if (
            live.under_way is None
            or self.waiter is not None
            or live.dead
            or live.run.status in TERMINAL  # its last row lets nothing start
        ):
            self._leave(task)
            return None
        # Meanwhile the task is as good as at its last attempt.
        self.waiter = ForRow(self, task, asyncio.get_running_loop().create_future())
        return self.waiter

    @property
    def still_waits(self) -> bool:
        """Whether a row is under way and nothing may start yet."""
        live = self._live
        return not self.orders and live.under_way is not None and not live.dead

    def cannot(self, order: Order, error: BaseException) -> None:
        """Whatever it is: a run that nobody works on and nobody is told of would hang."""
        live = self._live
        if isinstance(error, StepNotRegistered):
            live.stall(str(error))
            return
        _log.error("%s/%s cannot go on", live.definition.name, live.run_id, exc_info=error)
        why = record_failure(error)
        live.stall(f"the engine could not run node {order.node}: {why.kind}: {why.message}")

    def _useless(self, order: Order, report: Report | None) -> None:
        """An attempt ended after its run did, or with its task canceled."""
        if self._live.dead:
            self._unheard(report)
        else:
            self._cancelled(order, report)

    def _leave(self, task: asyncio.Task[None]) -> None:
        """A runner ends that has nothing more to do: no callback need tell of it."""
        self._let_go(task)
        self._holder.tasks.over(task)

    def _let_go(self, task: asyncio.Task[None]) -> Order | None:
        """The task is not this run's any more; what it was at."""
        order = self._kept.pop(task, None)
        if not self._kept:
            self._kept = {}  # a table that was filled once keeps its size
        return order

    def _unheard(self, report: Report | None) -> None:
        """An attempt ended after its run did, or was lost: it counts for nothing (D-15)."""
        if report is not None:
            live = self._live
            ended = live.run.status in TERMINAL
            why = "the run has ended" if ended else "the run is not held here any more"
            live.not_heard(report, f"{why}: how the attempt of node {report.node} ended is late")

    def _cancelled(self, order: Order, report: Report | None) -> None:
        """The task was cancelled, and must not be used again. By the engine, since nobody wants
        the attempt any more: how it ended is told all the same, and ignored. By a host that
        ends: then nothing here happens any more. By the step itself: an attempt without an
        outcome is made once more, then it has failed."""
        if report is None and order.halted:
            never = order.queued is not None and order.queued.never
            self._given_up(order, begun=not never or order.again or order.before)
            self.start()
            return
        again = not order.unwanted and not self._holder.stopping
        if report is None and order.again and again:
            why = "something in this process cancelled the task that the step ran in, twice"
            failure = FailureRecord("CancelledError", why)
            report = NodeFailed(order.task, order.node, order.number, failure, unknown=True)
        if report is not None:
            self._live.deliver(report)
        elif again:
            order.again = True
            self._live.timers.after(CANCELLED_PAUSE, partial(self._once_more, order))
        self.start()

    def _given_up(self, order: Order, *, begun: bool) -> None:
        """It was asked to stop, and has no outcome. Where the process ends that is told later."""
        live = self._live
        if not order.unwanted and not live.dead and not self._holder.stopping:
            order.unwanted = True
            live.deliver(AttemptGivenUp(order.task, order.node, order.number, begun))

    def _once_more(self, order: Order) -> None:
        if halts(self._live.run):
            self._given_up(order, begun=True)
            return
        self.orders.append(order)
        self.start()


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
