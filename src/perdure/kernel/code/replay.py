"""Replay: the code runs again from its journal, and must ask for what it asked for then.

Recorded outcomes are fed one transition at a time, in the order in which they were recorded, as
when they came. What the code asks for within a transition is compared as a set: Python versions
start concurrent calls in different orders. The first difference stops the run; nothing has been
written then, and code that asks for the same goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec import Raw

from perdure.kernel.actions import (
    CancelTasks,
    CompleteTask,
    Continued,
    CreateTask,
    FinishRun,
    Patched,
    ReopenRun,
    ResolveWait,
    StartChild,
    Transition,
)
from perdure.kernel.code.call import SPAWN, WAIT, Call
from perdure.kernel.code.calls import digest_of
from perdure.kernel.code.loop import Timer
from perdure.kernel.code.stuck import Stuck
from perdure.kernel.onward import Decided, Onward, plain
from perdure.kernel.run import GRACE
from perdure.model.errors import NonDeterminism

if TYPE_CHECKING:
    from perdure.kernel.code.calls import Calls

_WITH_OUTPUT: Final = (CreateTask, CompleteTask, ResolveWait)
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
                self._calls.answer(call, output)
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
            self._calls.opened(call)

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


class Script(msgspec.Struct):
    """A journal made ready to be replayed: the transitions to feed, with their places in it.
    `forgotten`: nodes that retries have reset. `apart`: those whose outputs stand apart."""

    transitions: list[tuple[int, Decided]]
    forgotten: frozenset[str]
    apart: tuple[str, ...]
    #: Where a retry lets the code go on otherwise than it did.
    lenient: frozenset[int] = frozenset()


def script_of(journal: Sequence[Decided]) -> Script:
    """What of a journal counts: a retry dropped what was decided after some point, and the
    records of calls that had no outcome then."""
    kinds = {
        type(action)
        for transition in journal
        if type(transition) is not Onward
        for action in transition.actions
    }
    if Continued in kinds or ReopenRun in kinds:
        journal = [plain(one) for one in journal]  # they are looked at again and again
    for place, transition in enumerate(journal if Continued in kinds else ()):
        if any(isinstance(action, Continued) for action in transition.actions):
            before = [Transition(0)] * place
            journal = [*before, since_continued(transition), *journal[place + 1 :]]
    kept: list[tuple[int, Decided]] = []
    forgotten: frozenset[str] = frozenset()
    lenient: frozenset[int] = frozenset()
    if ReopenRun not in kinds:
        kept = list(enumerate(journal, 1))
    for place, transition in enumerate(journal if ReopenRun in kinds else (), 1):
        reopened = next((a for a in transition.actions if isinstance(a, ReopenRun)), None)
        if reopened is not None:
            forgotten |= frozenset(reopened.reset)
            kept = without(kept, frozenset(reopened.reset), reopened.kept or 0)
            lenient |= {reopened.kept or 0}
        kept.append((place, transition))
    apart = {node for _, transition in kept for node in _apart(transition)}
    return Script(kept, forgotten, tuple(sorted(apart)), lenient)


def _apart(transition: Decided) -> Iterator[str]:
    """The nodes whose recorded outputs stand apart."""
    if type(transition) is not Onward:
        for action in transition.actions:
            if not isinstance(action, _WITH_OUTPUT):
                continue
            if action.output is None and action.output_ref is not None:
                yield action.node
    elif transition.output is None and transition.output_ref is not None:
        yield transition.node


def since_continued(transition: Decided) -> Transition:
    """A transition that continued the run as new, from there on: before is another life."""
    last = max(i for i, action in enumerate(transition.actions) if isinstance(action, Continued))
    return Transition(transition.at, transition.actions[last:])


def without(
    script: Sequence[tuple[int, Decided]], reset: frozenset[str], kept: int
) -> list[tuple[int, Decided]]:
    """The transitions up to a place, without what is about nodes that were reset, and without
    the run's end."""
    left: list[tuple[int, Decided]] = []
    for place, one in script:
        if place > kept:
            break
        ended = any(isinstance(action, FinishRun) for action in one.actions)
        actions = [
            action
            for action in one.actions
            if getattr(action, "node", None) not in reset
            and not (ended and isinstance(action, FinishRun | CancelTasks))
        ]
        left.append((place, Transition(one.at, actions)))
    return left


def ask_recorded(recorded: Recorded, put_off: dict[str, Any]) -> None:
    """When a reopened run is replayed: calls that were put off are matched."""
    asked = list(still_asked(put_off))
    put_off.clear()  # what a later retry has reset is put off once more
    for call in asked:
        if isinstance(call, Timer):
            recorded.match_timer(call)
        elif call.kind != WAIT:
            recorded.match_step(call)
        else:
            assert call.future is not None
            recorded.match_wait(call.future.members)


def still_asked(put_off: Mapping[str, Any]) -> Iterator[Any]:
    """Calls that are still wanted, each wait once."""
    seen: set[int] = set()
    for call in put_off.values():
        if isinstance(call, Timer):
            if not call.gone:
                yield call
        elif call.future is not None and not call.future.done() and id(call.future) not in seen:
            seen.add(id(call.future))
            yield call


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
