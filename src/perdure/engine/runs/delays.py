"""Delays: when a run begins that has not. Code that was delayed, or has not had its first turn; of
a delayed graph, when it asks for its first children: its other nodes have times of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.events import RunBegun

if TYPE_CHECKING:
    from perdure.engine.runs.live_run import LiveRun

#: The timer of a delayed start.
BEGIN: Final = "~begin"


def arm_beginning(live: LiveRun, due: int, created: int = 0) -> None:
    """See that a workflow which has not begun does so at its time. `created`: since when its time
    counts, if it is not known and the run is not delayed; 0 = it is known."""
    machine, limit = live.machine, live.definition.max_duration
    if isinstance(machine, CodeMachine) and (not live.run.begun or machine.calls.stuck):
        deadline = (due or created) + limit if created and limit is not None else None
        live.timers.arm(BEGIN, due, lambda: live.deliver(RunBegun(deadline)))


def begins_at(live: LiveRun) -> int | None:
    """When a workflow that has not begun is to, or a graph to ask for its first children; None for
    all others."""
    if live.run.begun or not live.machine.may_ask:
        return None
    return live.timers.due(BEGIN)
