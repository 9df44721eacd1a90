"""Plays the engine around a GraphMachine, without a store, a clock or chance (G-10).

Keeps what actions record, answers Loads from it and notes them, gives out ids t001, t002, … and
a time that moves only by `advance`. Before each event the machine is built anew over the folded
journal, as after a reload, unless `live`. After each event the snapshot must be what folding the
journal from empty gives, and after a refusal what it was before.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import msgspec
from msgspec import Raw

from perdure.codec.values import JsonCodec
from perdure.graph import Graph
from perdure.kernel.actions import (
    BufferSignal,
    CreateTask,
    DispatchTask,
    FinishRun,
    ReopenRun,
    Transition,
)
from perdure.kernel.events import (
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
from perdure.kernel.fold import fold
from perdure.kernel.machine import GraphMachine
from perdure.kernel.onward import Decided, plain
from perdure.kernel.plan import GraphPlan
from perdure.kernel.protocol import Decision, Deps, Load, Loaded
from perdure.kernel.run import NodeState, Run
from perdure.kernel.straight import straight_start
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord
from perdure.model.policy import NO_RETRY, RetryPolicy
from tests.unit.kernel.drawing import Member, document

#: 2025-01-01T00:00:00Z
NEW_YEAR = 1_735_689_600 * SECOND


def plan_of(nodes: list[Member], edges: list[Member], **rest: Any) -> GraphPlan:
    return Graph.load(document(nodes, edges, **rest)).plan


def text(value: Any) -> Raw:
    """The value as the JSON text that events carry."""
    return Raw(msgspec.json.encode(value))


def shown(run: Run) -> bytes:
    """Everything a snapshot holds, to compare."""
    return msgspec.json.encode(run)


class Harness:
    """One run of one graph."""

    def __init__(
        self, plan: GraphPlan, *, live: bool = False, policies: Mapping[str, RetryPolicy] = {}
    ) -> None:
        self.plan = plan
        self.live = live
        self.now = NEW_YEAR
        self.roll = 0.5
        self.journal: list[bytes] = []
        self.outputs: dict[str, Raw] = {}
        #: Payloads of kept signals that stand apart.
        self.payloads: dict[str, Raw] = {}
        #: The nodes of every Load asked for, in order, and the signals of those that name any.
        self.loads: list[tuple[str, ...]] = []
        self.signal_loads: list[tuple[str, ...]] = []
        #: Thrown into the machine instead of answering a Load.
        self.load_error: BaseException | None = None
        self._ids = count(1)
        self._messages = count(1)
        self.deps = Deps(
            now=lambda: self.now,
            new_id=lambda: f"t{next(self._ids):03d}",
            roll=lambda: self.roll,
            codec=JsonCodec(),
            policy=lambda step: policies.get(step, NO_RETRY),
        )
        self.machine = GraphMachine(plan, Run(), self.deps)

    # ---------------------------------------------------------------- events

    def apply(self, event: Event) -> Transition:
        """Apply one event; what it led to, action by action. Raises what the machine raises."""
        if not self.live:
            self.reload()
        before = shown(self.run)
        try:
            transition = self._straight_start(event) or self._drive(self.machine.apply(event))
        except BaseException:
            assert shown(self.run) == before
            raise
        if transition.ignored is None:
            self._record(transition)
        else:
            assert (transition.actions, shown(self.run)) == ([], before)
        assert shown(self.run) == shown(self.folded())
        return plain(transition)

    def _straight_start(self, event: Event) -> Transition | None:
        """The start of a new run, where nothing is in its way."""
        if type(event) is not RunStarted or self.run.status != "new":
            return None
        started = straight_start(self.plan, event, self.deps, self.now)
        if started is None:
            return None
        run, transition = started
        self.machine = GraphMachine(self.plan, run, self.deps)
        return transition

    def start(self, input: Any = None, **rest: Any) -> Transition:
        if "config" in rest:
            rest["config"] = text(rest["config"])
        return self.apply(RunStarted("r1", input=text(input), **rest))

    def complete(self, node: str, output: Any = None) -> Transition:
        """The current attempt of the node's task ends well; output `{}` unless told."""
        state = self.nodes[node]
        value = text({} if output is None else output)
        return self.apply(NodeCompleted(state.task, node, state.attempt, value))

    def fail(self, node: str, failure: FailureRecord | str = "boom") -> Transition:
        """The current attempt of the node's task fails."""
        state = self.nodes[node]
        if isinstance(failure, str):
            failure = FailureRecord("Error", failure)
        return self.apply(NodeFailed(state.task, node, state.attempt, failure))

    def signal(self, name: str, payload: Any = None, *, id: str | None = None) -> Transition:
        """A signal from outside; its message ids are m1, m2, … unless told."""
        message = f"m{next(self._messages)}" if id is None else id
        return self.apply(SignalReceived(name, message, text(payload)))

    def fire(self, node: str) -> Transition:
        """The node's timer fires: its time has come."""
        state = self.nodes[node]
        assert state.wake_at is not None
        self.now = max(self.now, state.wake_at)
        return self.apply(TimerFired(state.task, node, state.wake_at))

    def cancel(self, reason: str = "") -> Transition:
        return self.apply(RunCancelled(reason))

    def retry(
        self, node: str | None = None, *, plan: GraphPlan | None = None,
        deadline: int | None = None, **context: Any,
    ) -> Transition:  # fmt: skip
        """Begin again at the node, or at every failed one; `plan`: on another version."""
        if plan is not None:
            self.reload(plan)
        given = {name: text(value) for name, value in context.items()}
        return self.apply(RunRetried(node, deadline=deadline, **given))

    def pause(self) -> Transition:
        return self.apply(RunPaused())

    def unpause(self) -> Transition:
        return self.apply(RunUnpaused())

    def advance(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)

    # ---------------------------------------------------------------- what there is

    @property
    def run(self) -> Run:
        return self.machine.run

    @property
    def nodes(self) -> dict[str, NodeState]:
        return self.run.nodes

    def status(self, node: str) -> str:
        """The node's status, `unreached` for one that is not in the snapshot."""
        return self.nodes[node].status if node in self.nodes else "unreached"

    def output(self) -> Any:
        """The run's recorded output."""
        return msgspec.json.decode(finish(self.recorded()[-1]).output)

    def recorded(self) -> list[Transition]:
        """The journal, decoded."""
        rows = (msgspec.json.decode(row, type=Transition) for row in self.journal)
        return [Transition(r.at, list(r.actions), r.ignored, r.signal_delivered) for r in rows]

    def folded(self) -> Run:
        return fold(self.recorded())

    def reload(self, plan: GraphPlan | None = None) -> None:
        """Forget the machine and build one over the journal, as another process would."""
        self.plan = plan or self.plan
        self.machine = GraphMachine(self.plan, self.folded(), self.deps)

    def put_payloads_apart(self) -> None:
        """Large payloads stand apart in a journal: make those of all kept signals so, reload."""
        rows = self.recorded()
        self.journal = []
        for row in rows:
            for place, action in enumerate(row.actions):
                if type(action) is BufferSignal and action.payload is not None:
                    self.payloads[action.signal] = action.payload.copy()
                    row.actions[place] = BufferSignal(action.signal, action.name, payload_ref=0)
            self.journal.append(msgspec.json.encode(row))
        self.reload()

    # ---------------------------------------------------------------- the engine's part

    def _drive(self, decision: Decision) -> Decided:
        try:
            load = next(decision)
            while True:
                load = self._answer(decision, load)
        except StopIteration as stop:
            transition: Decided = stop.value
        return transition

    def _answer(self, decision: Decision, load: Load) -> Load:
        self.loads.append(load.outputs)
        if load.signals:
            self.signal_loads.append(load.signals)
        if self.load_error is not None:
            return decision.throw(self.load_error)
        known = {node: self.outputs[node] for node in load.outputs if node in self.outputs}
        payloads = {id: self.payloads[id] for id in load.signals if id in self.payloads}
        return decision.send(Loaded(known, payloads))

    def _record(self, transition: Decided) -> None:
        self.journal.append(msgspec.json.encode(plain(transition)))
        for action in transition.actions:
            if type(action) is ReopenRun:
                for node in action.reset:
                    self.outputs.pop(node, None)
            output = getattr(action, "output", None)
            if output is not None and hasattr(action, "node"):
                self.outputs[action.node] = output


# -------------------------------------------------------------------- reading transitions


def of(transition: Transition, kind: type) -> list[Any]:
    """Its actions of one kind, in order."""
    return [action for action in transition.actions if type(action) is kind]


def kinds(transition: Transition) -> list[str]:
    """The names of its actions, in order."""
    return [type(action).__name__ for action in transition.actions]


def created(transition: Transition, status: str) -> list[str]:
    """The nodes that become tasks of this status."""
    return [task.node for task in of(transition, CreateTask) if task.status == status]


def dispatched(transition: Transition) -> list[str]:
    """The nodes whose tasks are to run."""
    return [order.node for order in of(transition, DispatchTask)]


def input_of(transition: Transition, node: str) -> Any:
    """The input recorded for a node's task."""
    (task,) = [task for task in of(transition, CreateTask) if task.node == node]
    return msgspec.json.decode(task.input)


def failure_of(transition: Transition, node: str) -> FailureRecord:
    """The failure recorded for a node."""
    about = [a for a in transition.actions if getattr(a, "node", None) == node]
    (failure,) = [a.failure for a in about if getattr(a, "failure", None) is not None]
    assert isinstance(failure, FailureRecord)
    return failure


def finish(transition: Transition) -> FinishRun:
    """Its FinishRun."""
    (action,) = of(transition, FinishRun)
    assert isinstance(action, FinishRun)
    return action
