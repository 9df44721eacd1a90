"""Waits: what a workflow's code waits for beside its calls, signals and times.

A wait has one case or several, each with a node of its own: it is over with the first that comes,
or at once where one has come already. Recorded as it begins, or held against what was recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Raw

from perdure.kernel.actions import ConsumeSignal, CreateTask
from perdure.kernel.code.call import Call, CallFuture, future_of
from perdure.kernel.code.calls import Calls
from perdure.kernel.run import KeptSignal, Run

_NULL: Final = Raw(b"null")


def await_first(calls: Calls, cases: Sequence[Call]) -> CallFuture:
    """Wait for whichever case ends first: signals received already in case order, then due
    times, then what comes first (D-22)."""
    loop = calls.loop
    members = tuple(cases)
    future = future_of(loop, members)
    if not loop.alive:
        return future
    for call in members:
        call.future = future
    if calls.recorded is not None:
        calls.recorded.match_wait(members)
        return future
    create_wait(calls, members)
    return future


def create_wait(calls: Calls, members: tuple[Call, ...]) -> None:
    """Record a wait, or its outcome when it is there already."""
    for call in members:
        kept = None if call.signal is None else _kept(calls.run, call.signal)
        if kept is not None:
            payload = kept.payload if kept.payload is not None else calls.payloads[kept.id]
            calls.emit(CreateTask(calls.deps.new_id(), call.node, "completed", output=payload))
            calls.emit(ConsumeSignal(kept.id, call.node))
            answer(calls, call, payload)
            return
    now = calls.loop.now
    for call in members:
        if call.signal is None and call.due is not None and call.due <= now:
            calls.emit(CreateTask(calls.deps.new_id(), call.node, "completed", output=_NULL))
            answer(calls, call, _NULL)
            return
    calls.loop.idle = 0
    for call in members:
        call.task = calls.deps.new_id()
        calls.emit(
            CreateTask(
                call.task, call.node, "waiting", wake_at=call.due, awaited_signal=call.signal
            )
        )
        calls.open[call.node] = call


def waiting_for(calls: Calls, signal: str) -> Call | None:
    """The wait for a signal that has waited longest. Looked for among all that is open: an
    index of it would cost every run that waits more than this costs the few that wait for
    much."""
    for call in calls.open.values():
        if call.signal == signal:
            assert isinstance(call, Call)
            return call
    return None


def answer(calls: Calls, call: Call, payload: Raw) -> None:
    """A wait whose outcome was there when it was asked for."""
    calls.answered()
    if call.future is not None:
        call.future.set_result((call.index, payload))


def _kept(run: Run, name: str) -> KeptSignal | None:
    for kept in run.signals:
        if kept.name == name:
            return kept
    return None
