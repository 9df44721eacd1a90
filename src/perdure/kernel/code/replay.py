"""Replay: the code runs again from its journal, and must ask for what it asked for then.

Recorded outcomes are fed one transition at a time, in the order in which they were recorded, as
when they came. What is compared, and how, stands in recorded.py.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Raw

from perdure.kernel.actions import (
    BeginRun,
    CompleteTask,
    FailTask,
    ReopenRun,
    RequestStop,
    ResolveWait,
)
from perdure.kernel.code.call import STEP, WAIT, Call
from perdure.kernel.code.callbacks import Timer
from perdure.kernel.code.closing import close
from perdure.kernel.code.recorded import Recorded
from perdure.kernel.code.running import Running
from perdure.kernel.code.script import Script, script_of
from perdure.kernel.code.turns import AT_REST
from perdure.kernel.onward import Decided, Onward
from perdure.kernel.protocol import Load, Loaded
from perdure.kernel.run import GRACE
from perdure.model.errors import StoreError


def recall(machine: Running, journal: Sequence[Decided]) -> Generator[Load, Loaded, None]:
    """Bring the code to where its journal ends. Raises Stuck where it does not get there."""
    script = script_of(journal)
    outputs: dict[str, Raw] = {}
    if script.apart:
        answer = yield Load(outputs=script.apart)
        for node in script.apart:
            if node not in answer.outputs:
                raise StoreError(f"the recorded output of node {node} was not found")
            outputs[node] = answer.outputs[node]
    replay(machine, script, outputs, {})
    machine.calls.loop.turn = AT_REST


def replay(
    machine: Running, script: Script, outputs: Mapping[str, Raw], put_off: dict[str, Any]
) -> None:
    """Feed recorded transitions, comparing what the code asks for; what a retry lets it ask
    for again is put off."""
    calls = machine.calls
    recorded = calls.recorded = Recorded(calls, script, outputs, put_off)
    while (transition := recorded.next()) is not None:
        machine.now = transition.at
        try:
            if type(transition) is not Onward or not _resumed(machine, transition, recorded):
                for action in transition.actions:
                    _again(machine, action, recorded, put_off)
                machine.turn()
            root = machine.root
            if root is not None and calls.loop.alive and not recorded.lenient:
                if root.done():
                    machine.wind_up()
                recorded.close(ended=root.done())
        except BaseException:
            if calls.stuck is not None:
                close(calls)
                raise calls.stuck from None
            raise
    calls.recorded = None


def _resumed(machine: Running, onward: Onward, recorded: Recorded) -> bool:
    """What most transitions are: one task waited for the call that completed, and is resumed at
    once, not by way of the loop's callbacks (as in CodeMachine.decide)."""
    calls, node = machine.calls, onward.node
    call: Any = calls.open.get(node)
    if type(call) is not Call or call.kind != STEP or call.future is None:
        return False
    future: Any = call.future
    try:
        ((resume, context),) = future._callbacks
    except (TypeError, ValueError):  # no task awaits it, or several do
        return False
    del calls.open[node]
    call.future = None  # they refer to one another
    future.remove_done_callback(resume)
    future.set_result(recorded.output_of(onward))
    machine.turn(context, resume, future)
    return True


def _again(machine: Running, action: Any, recorded: Recorded, put_off: dict[str, Any]) -> None:
    """The part of a recorded transition that made the code go on."""
    calls, kind = machine.calls, type(action)
    if kind is BeginRun:
        machine.begin()
    elif kind is ResolveWait and action.node == GRACE:
        calls.loop.alive = False  # its time to clean up was over
    elif kind is CompleteTask or (kind is ResolveWait and action.status == "completed"):
        calls.completed(action.node, recorded.output_of(action))
    elif kind is FailTask or (kind is ResolveWait and action.status == "failed"):
        machine.fail_call(action.node, action.failure, getattr(action, "attempt", 0))
    elif kind is RequestStop:
        machine.stop()
    elif kind is ReopenRun:
        ask_recorded(recorded, put_off)


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
