"""A retry of a workflow's run: what it had decided up to a point is kept, the rest decided anew.

The point is where the last step failed for good, or where the named call was made; what was taken
back after it is made again, too. Outcomes recorded before it stand and are replayed; every call
that had none by then is made again. Signals taken after it are kept for whoever asks for them
then: what was sent is never lost.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from msgspec import Raw

from perdure.kernel.actions import (
    BufferSignal,
    CancelTasks,
    CompleteTask,
    ConsumeSignal,
    Continued,
    CreateTask,
    FailTask,
    FinishRun,
    ReopenRun,
    RequestStop,
    ResolveWait,
)
from perdure.kernel.code.call import WAIT, Call
from perdure.kernel.code.callbacks import Timer
from perdure.kernel.code.replay import replay, still_asked
from perdure.kernel.code.running import Running
from perdure.kernel.code.scopes import EARLIER
from perdure.kernel.code.script import Script, script_of, without
from perdure.kernel.code.waits import create_wait
from perdure.kernel.events import RunRetried
from perdure.kernel.onward import Decided
from perdure.kernel.protocol import Load
from perdure.model.errors import InvalidRequest, RunActive
from perdure.model.guesses import did_you_mean

#: Behind every transition.
_NO_END: Final = sys.maxsize


def on_run_retried(machine: Running, event: RunRetried) -> str | Load | None:
    """Reopen the run, replay what is kept, and go on live. Raises RunActive, InvalidRequest."""
    run = machine.run
    if run.status == "new":
        raise InvalidRequest("the run has not started yet")
    if run.status == "running":
        raise RunActive("the run has not ended: cancel it first")
    script = script_of(machine.past)
    kept = _before_undone(script, machine.past, _point(script, event.node), event.node)
    reset = frozenset(_open_after(script, kept)) | ({event.node} if event.node else set())
    before = without(script.transitions, reset, kept)
    apart = tuple(node for node in script.apart if node not in machine.outputs)
    if apart:
        return Load(outputs=apart)
    calls, program = machine.calls, machine.program
    calls.emit(
        ReopenRun(
            program.version, program.hash, tuple(sorted(reset)), input=event.input,
            config=event.config, deadline=event.deadline, kept=kept,
        )
    )  # fmt: skip
    sent = {a.signal: a for t in machine.past for a in t.actions if isinstance(a, BufferSignal)}
    _keep_again(machine, list(_signals_after(script, kept, reset, sent, machine.outputs)), kept)
    now = machine.now
    put_off: dict[str, Any] = {}
    emitted = calls.actions
    kept_script = Script(before, script.forgotten | reset, (), script.lenient | {kept})
    replay(machine, kept_script, machine.outputs, put_off)
    machine.now = calls.loop.now = now
    calls.actions = emitted
    for call in still_asked(put_off):
        _ask_again(machine, call)
    machine.run_on()
    return None


def _ask_again(machine: Running, call: Any) -> None:
    calls = machine.calls
    if isinstance(call, Timer):
        call.task = machine.deps.new_id()
        calls.emit(CreateTask(call.task, call.node, "waiting", wake_at=call.due))
    elif call.kind != WAIT:
        calls.create(call)
    else:
        assert isinstance(call, Call)
        assert call.future is not None
        create_wait(calls, call.future.members)


def _point(script: Script, node: str | None) -> int:
    """The place of the last transition that is kept. Raises InvalidRequest."""
    if node is not None:
        _refuse_unknown(script, node)
    last = 0
    for place, transition in script.transitions:
        for action in transition.actions:
            if isinstance(action, RequestStop):
                return place - 1  # what was done to clean up is no outcome
            if node is None and isinstance(action, FailTask):
                last = place
            elif node is not None and isinstance(action, CreateTask) and action.node == node:
                return place
    if last:
        return last - 1
    # Nothing failed but the code itself: everything is kept but its end.
    return script.transitions[-1][0]


def _refuse_unknown(script: Script, node: str) -> None:
    known = {
        action.node: None
        for _, transition in script.transitions
        for action in transition.actions
        if isinstance(action, CreateTask)
    }
    if node not in known:
        hint = did_you_mean(node, list(known))
        raise InvalidRequest(f"the run made no call {node}{'; ' if hint else ''}{hint}")


def _before_undone(script: Script, past: Sequence[Decided], kept: int, node: str | None) -> int:
    """The point, or an earlier one: what was taken back after it must not count as done, so that
    what is made anew begins with it. Raises InvalidRequest where another point was asked for."""
    asked = _asked(past)
    undone = list(_undone(script))
    while earlier := [
        (asked[first], first)
        for until, _, first in undone
        if until > kept and asked.get(first, kept) < kept
    ]:
        kept, first = min(earlier)
        if node is not None:
            raise InvalidRequest(
                f"what {first} did was taken back after {node} was called: go on from {first}, or "
                "from a call before it"
            )
    if node is None:
        _refuse_doing_twice(script, kept)
    for until, undo, first in undone:
        if first == EARLIER and until > kept > min(asked.values()) and node is None:
            raise InvalidRequest(
                f"{undo} took back what may have been done before its saga, and nobody says by "
                "which call: name the one to go on from, with from_node or --from CALL"
            )
    return kept


def _refuse_doing_twice(script: Script, kept: int) -> None:
    """What could not be taken back is done still, or nobody knows: somebody must look before what
    led to it is done again. An undo that was asked for by the point is made again alone."""
    undos: dict[str, int] = {}
    for place, transition in script.transitions:
        for action in transition.actions:
            if isinstance(action, CreateTask) and action.undoes is not None:
                undos[action.node] = place
            elif isinstance(action, CompleteTask):
                undos.pop(action.node, None)
    for undo, place in undos.items():
        if place > kept:
            raise InvalidRequest(
                f"{undo} was to take something back and did not, and that would be done again: see "
                "to it, then name the call to go on from, with from_node or --from CALL"
            )


def _undone(script: Script) -> Iterator[tuple[int, str, str]]:
    """The calls that undo: until when each may have done so, and the first call it may be of."""
    calls: dict[str, tuple[int, str, str]] = {}
    for place, transition in script.transitions:
        for action in transition.actions:
            if isinstance(action, CreateTask) and action.undoes is not None:
                calls[action.node] = (place, action.node, action.undoes)
            elif isinstance(action, CompleteTask) and action.node in calls:
                yield (place, *calls.pop(action.node)[1:])
            elif isinstance(action, FailTask) and action.node in calls:
                yield calls.pop(action.node)
    yield from ((_NO_END, *call[1:]) for call in calls.values())


def _asked(past: Sequence[Decided]) -> dict[str, int]:
    """When the code asked for each call first: one that a retry made again it had asked for before,
    and what it asked for since may have an outcome."""
    asked: dict[str, int] = {}
    for place, transition in enumerate(past, 1):
        for action in transition.actions:
            if isinstance(action, Continued):
                asked = {}
            elif isinstance(action, ReopenRun):
                kept = action.kept or 0
                asked = {node: at for node, at in asked.items() if at <= kept}
            elif isinstance(action, CreateTask):
                asked.setdefault(action.node, place)
    return asked


def _open_after(script: Script, kept: int) -> Iterator[str]:
    """Nodes that were created after the point, or had no outcome by then. What was answered at
    once or given up at the point itself counts as without: the code may come there later now, or
    go another way."""
    open_nodes: dict[str, bool] = {}
    for place, transition in script.transitions:
        # What the run's end gave up is wanted again.
        again = place == kept or any(isinstance(a, FinishRun) for a in transition.actions)
        for action in transition.actions:
            if isinstance(action, CreateTask):
                open_nodes[action.node] = action.status != "completed" or place >= kept
            elif place > kept:
                continue
            elif isinstance(action, CompleteTask | FailTask | ResolveWait):
                given_up = isinstance(action, ResolveWait) and action.status == "canceled"
                open_nodes[action.node] = given_up and again
            elif isinstance(action, CancelTasks):
                open_nodes.update(dict.fromkeys(action.nodes, again))
    return (node for node, is_open in open_nodes.items() if is_open)


def _keep_again(machine: Running, taken: Sequence[BufferSignal], kept: int) -> None:
    """Signals that were taken come before those that nobody has taken yet."""
    calls, names = machine.calls, {signal.name for signal in taken}
    younger = [signal for signal in machine.run.signals if signal.name in names]
    for signal in younger:
        calls.emit(ConsumeSignal(signal.id, ""))
    for again in taken:
        calls.emit(again)
    for signal in younger:
        payload = signal.payload if signal.payload is not None else calls.payloads[signal.id]
        calls.emit(BufferSignal(f"{signal.id}~{kept}", signal.name, payload))


def _signals_after(
    script: Script, kept: int, reset: AbstractSet[str], sent: Mapping[str, BufferSignal],
    outputs: Mapping[str, Raw],
) -> Iterator[BufferSignal]:  # fmt: skip
    """What was taken after the point, in that order, to be kept again."""
    awaited: dict[str, str] = {}
    for place, transition in script.transitions:
        for action in transition.actions:
            if isinstance(action, CreateTask) and action.awaited_signal is not None:
                awaited[action.node] = action.awaited_signal
            elif place < kept or (place == kept and getattr(action, "node", "") not in reset):
                continue
            elif isinstance(action, ConsumeSignal) and action.node:
                again = sent[action.signal]
                payload = again.payload
                if payload is None and again.payload_ref is not None:
                    payload = outputs[action.node]
                yield BufferSignal(f"{action.signal}~{kept}", again.name, payload)
            elif (
                isinstance(action, ResolveWait)
                and action.status == "completed"
                and action.node in awaited
            ):
                output = action.output if action.output is not None else outputs[action.node]
                yield BufferSignal(f"{action.task}~{kept}", awaited[action.node], output)
