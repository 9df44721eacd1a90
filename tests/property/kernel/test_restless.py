"""Any graph that waits and fails, under reports, signals, timers, cancels and retries in any order.

Stale, early and doubled ones among them; the store fails now and then, another process takes over.
The harness compares the snapshot with the folded journal after every event, and with what it was
before after every refusal; Watched judges every action by the state it met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.kernel.actions import CancelChild, Transition
from perdure.kernel.child_ids import call_id
from perdure.kernel.events import (
    ChildFinished,
    ChildStarted,
    DeadlineReached,
    Event,
    NodeCompleted,
    NodeFailed,
    RunCancelled,
    RunPaused,
    RunRetried,
    RunUnpaused,
    SignalReceived,
    TimerFired,
)
from perdure.kernel.machine import GraphMachine
from perdure.model.durations import SECOND
from perdure.model.errors import InvalidRequest, RunActive, RunFinished, StoreError
from perdure.model.failure import FailureRecord
from tests.property.kernel.graphs import SIGNALS, Drawn, graphs
from tests.property.kernel.test_runs import Data, pending
from tests.property.kernel.watched import Watched
from tests.unit.kernel.harness import NEW_YEAR, Harness, finish, of, text

REFUSALS = (InvalidRequest, RunActive, RunFinished)


def calls(h: Harness) -> dict[str, str]:
    """The calls that wait for a run, by node."""
    return {
        node: call_id(state.task, state.attempt)
        for node, state in h.nodes.items()
        if state.status == "pending" and state.child is not None and not state.not_before
    }


class Restless:
    """A run, and everything that may happen to it."""

    def __init__(self, graph: Drawn, data: Data, *, deadline: int | None = None) -> None:
        self.graph = graph
        self.h = Harness(graph.plan(), live=True)
        self.watched = Watched(graph)
        self.pick: Callable[[Any], Any] = data.draw
        #: Events of the past, to come again.
        self.past: list[Event] = []
        self.deadline = deadline

    def start(self) -> bool:
        """Whether the run has started: a broken condition right at the start refuses it."""
        try:
            transition = self.h.start({}, deadline=self.deadline)
        except InvalidRequest:
            return False
        self.watched.see(transition, {self.graph.nodes[0].id})
        return True

    def apply(self, event: Event) -> Transition | None:
        """Apply it, perhaps on a machine that has just been loaded and a store that fails once;
        None when it was refused."""
        h = self.h
        if self.pick(st.integers(0, 3)) == 0:
            h.put_payloads_apart()
            h.load_error = self.pick(st.sampled_from([None, StoreError("down")]))
        begun = self.begins(event) if isinstance(event, RunRetried) else set()
        asking = calls(h)
        try:
            transition = h.apply(event)
        except REFUSALS as refusal:
            self.check_refusal(event, refusal)
            return None
        except StoreError:
            h.load_error = None
            return self.apply(event)
        finally:
            h.load_error = None
        self.past.append(event)
        if transition.ignored is None:
            self.watched.see(transition, begun)
            self.check_children(event, asking, transition)
        return transition

    def check_children(self, event: Event, before: dict[str, str], transition: Transition) -> None:
        """Nobody who asked for a run forgets it: it is waited for, has ended, or is let go."""
        if isinstance(event, RunRetried):
            return
        still = calls(self.h)
        gone = {call_id(a.task, a.attempt) for a in of(transition, CancelChild) if not a.awaited}
        over = {event.task} if isinstance(event, ChildFinished) else set()
        for node, call in before.items():
            assert (still.get(node) == call) != (call in gone | over)

    def begins(self, event: RunRetried) -> set[str]:
        if event.node is not None:
            return {event.node}
        return {n for n, s in self.h.nodes.items() if s.status in ("failed", "canceled")}

    def check_refusal(self, event: Event, refusal: Exception) -> None:
        run = self.h.run
        if isinstance(refusal, RunActive):
            assert isinstance(event, RunRetried)
            assert run.active > 0
        elif isinstance(refusal, RunFinished):
            assert run.status in ("completed", "failed", "canceled")
        else:
            # a SWITCH that breaks where a retry begins, or no failed node to retry
            assert isinstance(event, RunRetried)
            assert run.active == 0

    # ------------------------------------------------------------------ what may happen

    def something(self) -> None:
        h = self.h
        h.advance(self.pick(st.sampled_from([0, 0, 1, 5, 60, -30])))
        events = [*self.reports(), *self.timers(), *self.signals(), *self.noise(), *self.orders()]
        events += self.children()
        self.apply(self.pick(st.sampled_from(events)))

    def reports(self) -> list[Event]:
        """Twice over: they are what moves a run on."""
        events: list[Event] = []
        for node in pending(self.h):
            state, drawn = self.h.nodes[node], self.graph.node(node)
            if state.attempt >= drawn.tries and drawn.ends == "well":
                output = text({"n": drawn.number})
                events.append(NodeCompleted(state.task, node, state.attempt, output))
            else:
                permanent = state.attempt >= drawn.tries and drawn.ends == "permanent"
                failure = FailureRecord("Error", "boom", permanent=permanent)
                events.append(NodeFailed(state.task, node, state.attempt, failure))
        return events * 2

    def timers(self) -> list[Event]:
        """Of every wait: at its time or before it, and one with a time of its own."""
        events: list[Event] = []
        for node, state in self.h.nodes.items():
            if state.status == "waiting" or state.child is not None:
                due = state.not_before or state.wake_at or NEW_YEAR
                events += [TimerFired(state.task, node, due), TimerFired(state.task, node, due - 1)]
        return events

    def children(self) -> list[Event]:
        """Of every run that is asked for: it is there, or has ended."""
        events: list[Event] = []
        for node, call in calls(self.h).items():
            failure, child = FailureRecord("Boom", "it broke"), self.h.nodes[node].child
            if child is not None and child.created is None:
                events += [ChildStarted(call, node, created) for created in (True, False)]
            events += [ChildFinished(call, node, "completed", text({"n": 1}))] * 2
            events += [ChildFinished(call, node, s, None, failure) for s in ("failed", "canceled")]
        return events

    def signals(self) -> list[Event]:
        kept = [signal.id for signal in self.h.run.signals]
        fresh = f"m{len(self.past)}-{len(self.h.journal)}"
        payload = self.pick(st.sampled_from([None, text(None), text(0), text({"n": 1})]))
        return [SignalReceived(name, id, payload) for name in SIGNALS for id in (fresh, *kept[:1])]

    def noise(self) -> list[Event]:
        """What came before, once more: reports, timers and requests (signals are told apart by
        the store)."""
        stale = [event for event in self.past[-8:] if not isinstance(event, SignalReceived)]
        for node, state in self.h.nodes.items():
            stale.append(NodeCompleted(state.task, node, state.attempt + 1, text({})))
        return stale

    def orders(self) -> list[Event]:
        nodes = [node.id for node in self.graph.nodes]
        events: list[Event] = [RunPaused(), RunUnpaused(), RunRetried(), DeadlineReached()]
        events += [RunRetried(self.pick(st.sampled_from(nodes)), deadline=self.deadline)]
        if self.h.run.status == "running":
            # A run that has ended is retried often, one that goes on is canceled seldom.
            events += [RunCancelled("enough")] if self.pick(st.booleans()) else []
        else:
            events = [RunRetried()] * 3 + events + [RunCancelled()]
        return events

    # ------------------------------------------------------------------ the rest of its life

    def settle(self) -> None:
        """Everything that is due comes, and no more signals."""
        for _ in range(300):
            reports = self.reports()
            timers = [n for n, s in self.h.nodes.items() if s.not_before or s.wake_at is not None]
            timers = [n for n in timers if n not in pending(self.h)]
            if reports or (reports := self.children()):
                self.apply(self.pick(st.sampled_from(reports)))
            elif timers:
                node = self.pick(st.sampled_from(timers))
                state = self.h.nodes[node]
                due = state.not_before or state.wake_at or 0
                self.h.now = max(self.h.now, due)
                fired = self.apply(TimerFired(state.task, node, due))
                assert fired is not None
                assert fired.actions
            else:
                return
        raise AssertionError("the run does not come to rest")

    def check_cancel(self) -> None:
        """While anything is active the run can be canceled, now, by anyone who loads it."""
        if self.h.run.active:
            machine = GraphMachine(self.h.plan, self.h.folded(), self.h.deps)
            with pytest.raises(StopIteration) as stop:
                next(machine.apply(RunCancelled("now")))
            assert finish(stop.value.value).status == "canceled"
            assert machine.run.active == 0


@pytest.mark.rule(
    "D-10", "G-6", "G-45", "G-46", "G-48", "G-82", "G-86", "G-91", "D-4", "D-13", "D-17"
)
@given(graphs(waiting=True, most=7), st.integers(0, 25), st.data())
def test_every_run_ends_or_waits_for_a_signal_nobody_sent(
    graph: Drawn, events: int, data: Data
) -> None:
    # scenario 208
    deadline = data.draw(st.none() | st.just(NEW_YEAR + 600 * SECOND))
    world = Restless(graph, data, deadline=deadline)
    if not world.start():
        assert world.h.journal == []
        return
    for _ in range(events):
        world.something()
        world.check_cancel()
    world.settle()
    run = world.h.run
    if run.status == "running":
        waiting = [s for s in run.nodes.values() if s.status == "waiting"]
        assert len(waiting) == run.active
        assert all(s.awaited_signal and s.wake_at is None for s in waiting)
    else:
        assert run.active == 0
    world.check_cancel()


@pytest.mark.rule("D-8", "D-17", "G-91", "G-93")
@given(graphs(waiting=True, most=7), st.data())
def test_retrying_what_failed_completes_any_run_in_the_end(graph: Drawn, data: Data) -> None:
    """However often it failed and was canceled: once tasks do well and signals come, a retry of
    the failed nodes leaves nothing undone, unless the document itself is at fault."""
    world = Restless(graph, data)
    h = world.h
    if not world.start():
        return
    for event in data.draw(st.lists(st.sampled_from(["report", "report", "cancel", "retry"]))):
        if h.run.status == "completed":
            return
        if h.run.status != "running":
            try_again(h)
        elif event == "cancel":
            h.cancel()
        elif event == "report" and (reports := world.reports()):
            h.apply(data.draw(st.sampled_from(reports)))
    for _ in range(3):
        do_well(h, lambda nodes: data.draw(st.sampled_from(nodes)))
        if h.run.status == "completed" or not try_again(h):
            break
    kinds = {failure.kind for _, failure in h.run.failures}
    assert h.run.status == "completed" or kinds & {"input", "routing"}


def try_again(h: Harness) -> bool:
    """Retry the failed nodes; False when a SWITCH at fault stands among them."""
    try:
        h.retry()
    except InvalidRequest as error:
        if "condition" not in str(error):
            raise
        return False
    return True


def do_well(h: Harness, choose: Callable[[list[str]], str]) -> None:
    """Everything that is active ends well, and what then becomes active."""
    for _ in range(100):
        active = [n for n, s in h.nodes.items() if s.status in ("pending", "waiting")]
        if h.run.status != "running":
            return
        node = choose(active)
        state = h.nodes[node]
        if state.not_before and state.child is not None:
            h.advance(3600)
            h.apply(TimerFired(state.task, node, state.not_before))
        elif state.child is not None:
            call = call_id(state.task, state.attempt)
            h.apply(ChildFinished(call, node, "completed", text({"n": 1})))
        elif state.status == "pending":
            h.complete(node, {"n": 1})
        elif state.awaited_signal is not None:
            h.signal(state.awaited_signal, {"n": 1})
        else:
            h.fire(node)
    raise AssertionError("the run does not end")
