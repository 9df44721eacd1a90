"""Halting: what becomes of the attempts of a run that is to stop before it undoes what it did.

Those under way are asked to stop and their ends are told; an `async def` is cancelled, a `def` sees
`canceled` and is awaited. Those that never began, and those whose process died, are told as given
up: only here is it known which is which. The machine decides what follows from it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from perdure.kernel.events import AttemptGivenUp
from perdure.kernel.run import FORWARD, Run

if TYPE_CHECKING:
    from perdure.engine.runs.live_run import LiveRun


def halts(run: Run) -> bool:
    """Whether it waits for what is under way and begins nothing, to undo what it did then."""
    return bool(run.reason) and run.phase == FORWARD and run.status == "running"


def halt(live: LiveRun) -> None:
    """The run is to stop, and that is durable."""
    work = live.work
    never = [*work.orders]
    work.orders.clear()
    for order in never:
        begun = order.again or order.before
        give_up(live, order.task, order.node, order.number, begun=begun)
    work.halt()


def not_begun(live: LiveRun, task: str, node: str, number: int) -> None:
    """The attempt does not begin; it may have, in a process that held the run before."""
    give_up(live, task, node, number, begun=(task, number) in live.work.before)


def give_up(live: LiveRun, task: str, node: str, number: int, *, begun: bool) -> None:
    """Tell the run, when it has carried out what it is at, that the attempt has no outcome."""
    live.timers.after(0, partial(live.deliver, AttemptGivenUp(task, node, number, begun)))
