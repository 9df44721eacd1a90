"""Plays the engine around a workflow's machine: no store, no clock, no chance, no event loop.

Keeps the journal as it is written and read back. `reload` lets the code go and brings another
copy to where the journal ends, as after a crash or a takeover. After each event the snapshot must
be what folding the journal gives.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
from msgspec import Raw

from perdure.codec.journal import decode_row, encode_row
from perdure.codec.values import JsonCodec
from perdure.flow.workflow import Workflow
from perdure.kernel.actions import FinishRun, Transition
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.code.replay import recall
from perdure.kernel.events import (
    ChildFinished,
    ChildStarted,
    DeadlineReached,
    Event,
    NodeCompleted,
    NodeFailed,
    RunBegun,
    RunCancelled,
    RunRetried,
    RunStarted,
    SignalReceived,
    TimerFired,
)
from perdure.kernel.fold import fold
from perdure.kernel.onward import Decided, plain
from perdure.kernel.protocol import Deps, Load, Loaded
from perdure.kernel.run import NodeState, Run
from perdure.model.durations import SECOND
from perdure.model.failure import FailureRecord

#: 2025-01-01T00:00:00Z
NEW_YEAR = 1_735_689_600 * SECOND


def text(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


class Board:
    """One run of one workflow, begun."""

    def __init__(
        self, workflow: Workflow[Any, Any], input: Any = None, *, begin: bool = True, id: str = "r1"
    ) -> None:
        self.workflow = workflow
        self.now = NEW_YEAR
        self._ids = count(1)
        self._signals = count(1)
        self.deps = Deps(lambda: self.now, self._id, lambda: 0.5, JsonCodec())
        self.run = Run()
        self.machine: CodeMachine = workflow.machine(self.run, self.deps)
        self.journal: list[Decided] = []
        deadline = workflow.max_duration
        self.apply(
            RunStarted(
                id,
                input=None if input is None else text(input),
                deadline=None if deadline is None else self.now + deadline,
            )
        )
        if begin:
            self.apply(RunBegun())

    def _id(self) -> str:
        return f"t{next(self._ids):06}"

    # ------------------------------------------------------------------ what happens

    def apply(self, event: Event) -> Transition:
        """What the event led to, action by action."""
        decision = self.machine.apply(event)
        try:
            asked = next(decision)
            while True:
                asked = decision.send(self._answer(asked))
        except StopIteration as stop:
            transition: Decided = stop.value
        if transition.ignored is None:
            self.journal.append(_written(transition))
            assert msgspec.json.encode(fold(self.journal)) == msgspec.json.encode(self.run)
        return plain(transition)

    def _answer(self, asked: Load) -> Loaded:
        raise AssertionError(f"nothing stands apart here, and {asked} is asked for")

    def complete(self, node: str, output: Any = None) -> Transition:
        state = self.run.nodes[node]
        return self.apply(NodeCompleted(state.task, node, state.attempt, text(output)))

    def fail(
        self, node: str, message: str = "no", *, kind: str = "Boom", **more: Any
    ) -> Transition:
        state = self.run.nodes[node]
        failure = FailureRecord(kind, message, **more)
        return self.apply(NodeFailed(state.task, node, state.attempt, failure))

    def fire(self, node: str) -> Transition:
        state = self.run.nodes[node]
        assert state.wake_at is not None
        self.now = max(self.now, state.wake_at)
        return self.apply(TimerFired(state.task, node, state.wake_at))

    def send(self, name: str, value: Any = None) -> Transition:
        return self.apply(SignalReceived(name, f"s{next(self._signals)}", text(value)))

    def find(self, node: str, *, created: bool = True) -> Transition:
        """The child of a call is there."""
        return self.apply(ChildStarted(self.run.nodes[node].task, node, created))

    def end_child(self, node: str, output: Any = None) -> Transition:
        """The child of a call has completed."""
        task = self.run.nodes[node].task
        return self.apply(ChildFinished(task, node, "completed", text(output)))

    def fail_child(self, node: str, kind: str = "Boom", status: Any = "failed") -> Transition:
        """The child of a call has not."""
        task, failure = self.run.nodes[node].task, FailureRecord(kind, "no")
        return self.apply(ChildFinished(task, node, status, failure=failure))

    def cancel(self, reason: str = "") -> Transition:
        return self.apply(RunCancelled(reason))

    def reach_deadline(self) -> Transition:
        assert self.run.deadline is not None
        self.now = max(self.now, self.run.deadline)
        return self.apply(DeadlineReached())

    def retry(
        self, node: str | None = None, *, workflow: Workflow[Any, Any] | None = None
    ) -> Transition:
        """Reopen the run, as a short owner does: nothing of it is in memory."""
        self.workflow = workflow or self.workflow
        self.run = fold(self.journal)
        self.machine = self.workflow.machine(self.run, self.deps)
        self.machine.past = self.journal
        made = self.apply(RunRetried(node))
        if self.run.status == "running":
            self.reload()
        return made

    def reload(self, workflow: Workflow[Any, Any] | None = None) -> None:
        """Another copy of the code (or other code), brought to where the journal ends."""
        self.machine.close()
        self.workflow = workflow or self.workflow
        self.run = fold(self.journal)
        self.machine = self.workflow.machine(self.run, self.deps)
        for asked in recall(self.machine, self.journal):
            self._answer(asked)

    # ------------------------------------------------------------------ what there is

    @property
    def open(self) -> dict[str, NodeState]:
        """The calls that have no outcome, in the order in which they were made."""
        return {
            node: state
            for node, state in self.run.nodes.items()
            if state.status in ("pending", "waiting")
        }

    @property
    def pending(self) -> list[str]:
        return [node for node, state in self.open.items() if state.status == "pending"]

    @property
    def waiting(self) -> list[str]:
        return [node for node, state in self.open.items() if state.status == "waiting"]

    @property
    def end(self) -> FinishRun:
        last = self.journal[-1].actions[-1]
        assert isinstance(last, FinishRun), f"the run goes on: {list(self.open)}"
        return last

    @property
    def result(self) -> Any:
        end = self.end
        assert end.status == "completed", end
        return msgspec.json.decode(end.output or b"null")

    def told(self, index: int = -1) -> list[tuple[str, str]]:
        """A transition's actions: kind and node."""
        return [(type(a).__name__, getattr(a, "node", "")) for a in self.journal[index].actions]


def _written(transition: Decided) -> Decided:
    """As it is read back from a journal."""
    body, payloads = encode_row([transition])
    assert not payloads, "values here are small"
    return decode_row(body)[0]
