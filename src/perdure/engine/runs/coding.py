"""Runs of workflow functions in the engine: begun, brought back from their journals, let go of.

A graph's machine is its snapshot; a workflow's is suspended code. It begins on the worker that
owns the run, in the same row as the start where that worker started it; elsewhere its code runs
again from the journal; and wherever it leaves memory it is closed, never left to the garbage
collector.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from perdure.engine.runs.values import Places, ReadMany, fetched
from perdure.kernel.actions import Continued, Transition
from perdure.kernel.code import replay
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.code.script import since_continued
from perdure.kernel.code.stuck import Interrupted, Stuck
from perdure.kernel.events import RunBegun
from perdure.kernel.onward import Decided
from perdure.kernel.protocol import Machine
from perdure.kernel.run import GRACE, Run
from perdure.model.errors import PayloadMissing, PerdureError, StoreError
from perdure.stores.rows import NEVER

_log = logging.getLogger("perdure.engine")


def begun(machine: Machine) -> Transition | None:
    """The first turn of a workflow that starts here; None where there is none to take: a graph
    has begun with its start, and code that cannot begin stalls later, when it is asked again."""
    if not isinstance(machine, CodeMachine):
        return None
    try:
        made = machine.decide(RunBegun())
    except Stuck:
        return None
    assert isinstance(made, Transition), "a run that begins has nothing to load"
    return made


def is_interrupted(machine: Machine) -> bool:
    """Whether the process ends in the middle of a turn of a run's code: what is in memory says more
    than the journal."""
    return isinstance(machine, CodeMachine) and isinstance(machine.calls.stuck, Interrupted)


def this_life(transitions: Sequence[Decided]) -> list[Decided]:
    """The transitions of a journal's first row, without what was decided before the run went on as
    new: that is another life's, whose beginning is gone."""
    first, *others = transitions
    if any(isinstance(action, Continued) for action in first.actions):
        first = since_continued(first)
    return [first, *others]


def is_over(run: Run, now: int) -> bool:
    """Whether the run's deadline has come, or the end of the time in which its code may clean
    up."""
    return any(time <= now for time in _ends(run))


def ends_by(run: Run, now: int) -> int:
    """When the run ends at the latest, though nobody acts; NEVER where nothing ends it."""
    return min((time for time in _ends(run) if time > now), default=NEVER)


def _ends(run: Run) -> list[int]:
    grace = run.nodes.get(GRACE)
    times = (run.deadline, None if grace is None else grace.wake_at)
    return [time for time in times if time is not None]


async def bring_back(
    machine: Machine, journal: Sequence[Decided], outputs: Places, read: ReadMany, *,
    to_end: bool,
) -> None:  # fmt: skip
    """`recall`; but where a run that is `to_end` does not get there, it goes on without its code,
    to its end."""
    try:
        await recall(machine, journal, outputs, read)
    except Exception as error:
        passes = isinstance(error, StoreError) and not isinstance(error, PayloadMissing)
        if passes or not to_end or not isinstance(machine, CodeMachine):
            raise
        give_up(machine, str(error) or repr(error))


def is_given_up(machine: Machine) -> bool:
    """Whether this is a run whose code is not run any more."""
    return isinstance(machine, CodeMachine) and bool(machine.given_up)


def give_up(machine: CodeMachine, why: str) -> None:
    """Run the code no more: the run can only end now."""
    name = f"{machine.run.definition}/{machine.run.id}"
    _log.warning("%s is to end, and does so without its code: %s", name, why)
    for said in machine.give_up(why):
        _log.warning("%s: its code would not end when it was given up: %s", name, said)


async def recall(
    machine: Machine, journal: Sequence[Decided], outputs: Places, read: ReadMany
) -> None:
    """Bring a workflow's code to where its journal ends. Raises StoreError, and PerdureError
    where the code does not get there."""
    if not isinstance(machine, CodeMachine):
        return
    try:
        replaying = replay.recall(machine, journal)
        try:
            asked = next(replaying)
            while True:
                asked = replaying.send(await fetched(asked, outputs, {}, read))
        except StopIteration:
            return
    except Stuck as stuck:
        raise PerdureError(str(stuck)) from stuck


def close(machine: Machine, named: str) -> None:
    """Let a run's code go, if it is code; what asyncio has to tell of it is logged."""
    if isinstance(machine, CodeMachine):
        for context in machine.calls.loop.untold:
            _log.error("%s: %s", named, context.get("message"), exc_info=context.get("exception"))
        machine.calls.loop.untold = ()
        for said in machine.close():
            _log.warning("%s: its code would not end when it was let go of: %s", named, said)
