"""GraphMachine: one event in, one transition out.

`decide` is the single entry point; `apply` is the same for whoever can load what it asks for.
Handlers are named after their events; each checks that the event still matters, emits actions,
and routes forward. The machine lives as long as its run is in memory and must be given one event
at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Raw

from perdure.kernel import compensation, halting
from perdure.kernel.actions import Transition
from perdure.kernel.child_reports import on_child_finished, on_child_started
from perdure.kernel.events import (
    AttemptGivenUp,
    ChildFinished,
    ChildStarted,
    DeadlineReached,
    Event,
    NodeCompleted,
    NodeFailed,
    RunCancelled,
    RunPaused,
    RunRetried,
    RunStarted,
    RunUnpaused,
    SignalReceived,
    TimerFired,
)
from perdure.kernel.finish import finish
from perdure.kernel.halting import wind_down
from perdure.kernel.onward import Decided
from perdure.kernel.plan import GraphPlan
from perdure.kernel.protocol import Decision, Deps, Load
from perdure.kernel.retries import fail_or_retry
from perdure.kernel.routing import propagate
from perdure.kernel.run import COMPENSATING, FORWARD, Run
from perdure.kernel.starting import on_run_retried, on_run_started
from perdure.kernel.stopping import (
    on_deadline_reached,
    on_run_cancelled,
    on_run_paused,
    on_run_unpaused,
    stop_the_rest,
)
from perdure.kernel.straight import straight_on
from perdure.kernel.tasks import complete, stale
from perdure.kernel.turn import NeedLoad, Turn
from perdure.kernel.wakes import on_signal_received, on_timer_fired
from perdure.model.errors import InvalidRequest


class GraphMachine:
    """Decides for one run of a graph. `run` is its snapshot, changed by what is decided."""

    __slots__ = ("_straight", "_turn", "handlings", "may_ask", "run", "undoes")

    def __init__(self, plan: GraphPlan, run: Run, deps: Deps) -> None:
        self.run = run
        #: See kernel.protocol.Machine.handlings.
        self.handlings = plan.handlings
        #: See kernel.protocol.Machine.may_ask.
        self.may_ask = plan.may_ask
        #: Whether its run may have something to undo before it ends.
        self.undoes = plan.undoes
        self._straight = plan.straight
        self._turn = Turn(plan, run, deps)

    @property
    def plan(self) -> GraphPlan:
        """What it decides by."""
        return self._turn.plan

    @property
    def outputs(self) -> Mapping[str, Raw]:
        """The outputs in memory, by node."""
        return self._turn.outputs

    def decide(self, event: Event) -> Decided | Load:
        """See kernel.protocol.Machine.decide."""
        run, turn = self.run, self._turn
        halts = run.stopping is not None
        now = turn.deps.now()
        if now < run.at:  # noqa: PLR1730  # a call for each event
            # Time never goes back, whoever takes over with whatever clock. A timer that counts is
            # due by this time: early ones are ignored.
            now = run.at
        made: Decided | None = None
        if type(event) is NodeCompleted and not halts:
            if (then := self._straight.get(event.node)) is not None:
                made = straight_on(turn, event, then, now)
            elif event.node in turn.plan.closing:
                made = straight_on(turn, event, None, now)
        if made is not None:
            return made
        handler = (HALTING[run.phase] if halts else HANDLERS).get(type(event))
        if handler is None:
            raise InvalidRequest(f"unknown event {type(event).__name__}")
        turn.begin(now)
        try:
            handler(turn, event)
            if turn.ignored is None:
                if halts:
                    wind_down(turn)
                if run.failures and run.active and run.stopping is None and turn.gives_up:
                    stop_the_rest(turn)
                if not run.active:
                    finish(turn)
        except NeedLoad as need:
            turn.roll_back()
            return need.load
        except BaseException:
            turn.roll_back()
            raise
        return Transition(now, turn.keep(), turn.ignored, turn.signal_delivered)

    def apply(self, event: Event) -> Decision:
        """See kernel.protocol.Machine.apply."""
        while type(made := self.decide(event)) is Load:
            # Nothing is held while it waits: a decision given up here, however late its generator
            # is collected, must not touch what later events decided.
            self._turn.loaded(made, (yield made))
        return made  # type: ignore[return-value]  # it is no Load


def on_node_completed(turn: Turn, event: NodeCompleted) -> None:
    """Record the output, once, and route on."""
    turn.ignored = stale(turn, event)
    if turn.ignored is not None:
        return
    complete(turn, event)
    if turn.run.status == "running":
        propagate(turn, turn.plan.shape.successors.get(event.node, ()))


def on_node_failed(turn: Turn, event: NodeFailed) -> None:
    """Another attempt, or the task has failed for good."""
    turn.ignored = stale(turn, event)
    if turn.ignored is None:
        fail_or_retry(turn, event)


HANDLERS: Final[Mapping[type, Callable[[Turn, Any], None]]] = {
    RunStarted: on_run_started,
    NodeCompleted: on_node_completed,
    NodeFailed: on_node_failed,
    DeadlineReached: on_deadline_reached,
    TimerFired: on_timer_fired,
    SignalReceived: on_signal_received,
    ChildStarted: on_child_started,
    ChildFinished: on_child_finished,
    RunCancelled: on_run_cancelled,
    RunRetried: on_run_retried,
    RunPaused: on_run_paused,
    RunUnpaused: on_run_unpaused,
    AttemptGivenUp: halting.not_under_way,
}

#: The same for runs that are to stop, by their phase.
HALTING: Final[Mapping[str, Mapping[type, Callable[[Turn, Any], None]]]] = {
    FORWARD: {
        **HANDLERS,
        NodeCompleted: halting.on_completed,
        NodeFailed: halting.on_failed,
        AttemptGivenUp: halting.on_attempt_given_up,
        TimerFired: halting.on_timer,
        RunCancelled: halting.on_cancelled_again,
        DeadlineReached: halting.on_deadline,
    },
    COMPENSATING: {
        **HANDLERS,
        NodeCompleted: compensation.on_undone,
        NodeFailed: compensation.on_undo_failed,
        RunCancelled: halting.on_cancelled_again,
        DeadlineReached: halting.on_deadline,
    },
}
