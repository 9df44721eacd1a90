"""Recorded: what a workflow's code asked for when it ran first, as it runs again: it must ask for
the same.

What it asks for within a transition is compared as a set: Python versions start concurrent calls
in different orders. The first difference stops the run, and both are shown; nothing has been
written then, and code that asks for the same goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from msgspec import Raw

from perdure.kernel.actions import (
    CancelTasks,
    CompleteTask,
    CreateTask,
    FinishRun,
    Patched,
    ResolveWait,
    StartChild,
)
from perdure.kernel.code.call import SPAWN, Call
from perdure.kernel.code.callbacks import Timer
from perdure.kernel.code.calls import Calls, digest_of
from perdure.kernel.code.script import Script
from perdure.kernel.code.stuck import Stuck
from perdure.kernel.code.waits import answer
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.run import GRACE
from perdure.model.errors import NonDeterminism

_SHOWN: Final = 200


class Recorded:
    """What was recorded of what the code asked for, one transition after another (`next`). Calls to
    nodes that are forgotten are put off: a retry dropped their records; where it is `lenient`,
    whatever was not recorded."""

    def __init__(
        self, calls: Calls, script: Script, outputs: Mapping[str, Raw], put_off: dict[str, Any]
    ) -> None:
        self._calls = calls
        self._script = script
        self._outputs = outputs
        self._put_off = put_off
        #: How many transitions were begun; the place of the last one in the journal, from 1.
        self._begun = 0
        self._place = 0
        self.lenient = False
        self._created: dict[str, CreateTask] = {}
        self._children: dict[str, StartChild] = {}
        self._canceled: set[str] = set()
        self._finish: FinishRun | None = None
        self._patched: set[str] = set()

    def next(self) -> Decided | None:
        """Begin the next transition: what happened in it. None: there is none."""
        script, at = self._script, self._begun
        if at == len(script.transitions):
            return None
        self._place, transition = script.transitions[at]
        self._begun = at + 1
        self._calls.loop.now = transition.at
        self.lenient = self._place in script.lenient
        for left in (self._created, self._children, self._canceled, self._patched):
            left.clear()
        self._finish = None
        if type(transition) is Onward:
            self._created[transition.next] = transition.created
        else:
            for action in transition.actions:
                self._note(type(action), action)
        return transition

    def _note(self, kind: type, action: Any) -> None:
        if kind is CreateTask:
            if action.node != GRACE:  # that is the machine's own
                self._created[action.node] = action
        elif kind is StartChild:
            self._children[action.node] = action
        elif kind is Patched:
            self._patched.add(action.id)
        elif kind is CancelTasks:
            self._canceled.update(action.nodes)
        elif kind is FinishRun:
            self._finish = action
        elif kind is ResolveWait and action.status == "canceled" and action.node != GRACE:
            self._canceled.add(action.node)

    def output_of(self, action: CompleteTask | ResolveWait | Onward) -> Raw:
        """The recorded output, wherever it stands."""
        return action.output if action.output is not None else self._outputs[action.node]

    # ------------------------------------------------------------------ what the code asks for

    def match_step(self, call: Call) -> None:
        """The code awaits a step, or another run."""
        if call.child is not None and call.node not in self._created:
            self._as_before(call)
        known = self._created.pop(call.node, None)
        if known is None:
            what = "step" if call.child is None else _child_shown(call)
            self._unknown(call.node, f"{what} {call.node}({_shown(call.input)})", call)
            return
        same = _same(known, call.input) or _same_otherwise(known, call)
        call.other = None  # it refers to what refers to the call
        if known.status != "pending" or not same:
            self._differ(
                f"{call.node}({_shown(known.input)})" if known.status == "pending"
                else f"{call.node}, a wait",
                f"{call.node}({_shown(call.input)})",
            )  # fmt: skip
        if self._children or call.child is not None:
            self._match_child(call)
        call.task = known.task

    def _as_before(self, call: Call) -> None:
        """A run that was asked for when its definition had another name."""
        assert call.child is not None
        for node, child in call.child.former:
            if node in self._children or node in self._script.forgotten:
                call.node, call.child = node, child
                return

    def _match_child(self, call: Call) -> None:
        """What a call waits for is the recorded run, or no run at all."""
        known = self._children.get(call.node)
        wanted = None if call.child is None else (call.child.definition, call.child.id)
        if known is None:
            if wanted is not None:
                self._differ(f"step {call.node}", f"{_child_shown(call)} as {call.node}")
        elif wanted != (known.definition, known.id) or known.detached != (call.kind == SPAWN):
            recorded = f"{'spawn' if known.detached else 'child'} {known.definition}/{known.id}"
            self._differ(f"{recorded} as {call.node}", f"{_child_shown(call)} as {call.node}")

    def match_wait(self, members: Sequence[Call]) -> None:
        """The code waits; the recorded times count, whatever it says now."""
        for call in members:
            known = self._created.get(call.node)
            if known is not None and known.status == "completed":
                del self._created[call.node]
                output = known.output if known.output is not None else self._outputs[call.node]
                answer(self._calls, call, output)
                return
        for call in members:
            known = self._created.pop(call.node, None)
            if known is None:
                self._unknown(call.node, _wait_shown(call), call)
                continue
            if known.status != "waiting" or known.awaited_signal != call.signal:
                recorded = f"signal {known.awaited_signal}" if known.awaited_signal else "a time"
                self._differ(f"{call.node} waiting for {recorded}", _wait_shown(call))
            call.task, call.due = known.task, known.wake_at
            self._calls.open[call.node] = call

    def match_timer(self, timer: Timer) -> None:
        """A timer of the loop lives to the end of its turn."""
        known = self._created.pop(timer.node, None)
        if known is None:
            self._unknown(timer.node, f"a timer ({timer.node})", timer)
        else:
            timer.task, timer.due = known.task, known.wake_at or timer.due

    def gave_up(self, node: str) -> None:
        """The code gave a call up."""
        self._canceled.discard(node)

    def patched(self, id: str) -> bool:
        """Whether this is where the run took a guarded change's new way."""
        found = id in self._patched
        self._patched.discard(id)
        return found

    def _unknown(self, node: str, asked: str, call: Any) -> None:
        """The code asks for what is not recorded here: it is put off, where a retry lets it ask."""
        if not self.lenient and node not in self._script.forgotten:
            self._differ(self._rest(), asked)
        self._put_off.setdefault(node, call)

    # ------------------------------------------------------------------ the turn's end

    def close(self, *, ended: bool) -> None:
        """The turn is over: everything that was recorded must have been asked for."""
        if self._created or self._canceled:
            what = "nothing more" if not ended else "nothing more: its function ended"
            self._differ(self._rest(), what)
        if ended and self._finish is None:
            self._differ("nothing: the function went on waiting", "the end of the function")
        if not ended and self._finish is not None and self._finish.status == "completed":
            self._differ("the end of the function", "nothing: the function goes on")

    def _rest(self) -> str:
        if self._created:
            first = next(iter(self._created.values()))
            return f"{first.node}({_shown(first.input)})" if first.input else first.node
        if self._canceled:
            return f"giving up {min(self._canceled)}"
        if self._finish is not None:
            return "the end of the function"
        return "nothing"

    def _differ(self, recorded: str, asked: str) -> NoReturn:
        error = NonDeterminism(
            f"the workflow's code does not do what it did: at transition {self._place} of the "
            f"journal {recorded} is recorded, and now it asks for {asked}"
        )
        self._calls.give_up_on(
            Stuck(
                f"{error}. Nothing was changed: run a version of the code that still does this, "
                "or guard the change with ctx.patched()",
                error,
            )
        )


def _same(known: CreateTask, input: Raw | None) -> bool:
    """Whether these are the arguments that are recorded."""
    if known.digest is not None:
        return known.digest == digest_of(input)
    return known.input == input


def _same_otherwise(known: CreateTask, call: Call) -> bool:
    """Whether they are in another form; then the call is the recorded one."""
    form = None if call.other is None else call.other()
    if form is None or not _same(known, form[0]):
        return False
    call.input, call.how = form
    return True


def _wait_shown(call: Call) -> str:
    what = f"signal {call.signal}" if call.signal is not None else "a time"
    return f"{call.node} waiting for {what}"


def _child_shown(call: Call) -> str:
    if call.child is None:
        return "step"
    return f"{call.kind} {call.child.definition}/{call.child.id}"


def _shown(input: Raw | None) -> str:
    if input is None:
        return ""
    text = bytes(input).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
