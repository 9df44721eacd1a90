"""Loading: from a claimed run's journal to a LiveRun that goes on where the last row ended.

Unread mail is applied first: it may take back what is pending. Then every pending task is
dispatched again, with the attempt it was at, and every timer is armed.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from perdure.engine.runs.children import ask_when_due
from perdure.engine.runs.coding import bring_back, ends_by, give_up, is_given_up, is_over
from perdure.engine.runs.delays import arm_beginning
from perdure.engine.runs.effects import Effects
from perdure.engine.runs.halting import halts, not_begun
from perdure.engine.runs.journal import Recorded, fetch_context, read_journal
from perdure.engine.runs.live_run import LiveRun
from perdure.engine.runs.timers import DEADLINE
from perdure.engine.runs.undecided import ends_stalled
from perdure.engine.shielded import shielded
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.events import DeadlineReached
from perdure.kernel.protocol import Machine
from perdure.kernel.run import GRACE, Run
from perdure.model.definition import Definition
from perdure.model.errors import PayloadMissing, PerdureError
from perdure.stores.answers import Claim, LoadedRun
from perdure.stores.port import LONE_CRASHES
from perdure.stores.rows import NEVER

if TYPE_CHECKING:
    from perdure.engine.worker.shell import Shell


_log = logging.getLogger("perdure.engine")


async def bring_to_life(
    shell: Shell, claim: Claim, definition: Definition[Any, Any], loaded: LoadedRun
) -> LiveRun | None:
    """Start what is pending of a claimed run; None when the claim does not hold any more. Raises
    StoreError to try again, any other PerdureError where that would not help."""
    if (loaded.run.owner, loaded.run.epoch) != (shell.worker, claim.epoch):
        # Taken over meanwhile: the rows just read stand behind the fence that should stop us.
        _log.warning("%s/%s is another worker's now", definition.name, loaded.run.id)
        return None
    recorded = read_journal(loaded)
    run = recorded.run
    if run.status != "running":
        raise PerdureError(f"its journal says that the run is {run.status}, its row: running")
    _tell_of_crashes(claim, f"{definition.name}/{loaded.run.id}")
    machine = await _machine(shell, claim, definition, loaded, recorded)
    live = LiveRun(
        shell, claim.key, definition.name, loaded.run.id, definition, machine, run,
        epoch=claim.epoch, seq=recorded.seq, read=recorded.read,
    )  # fmt: skip
    live.outputs, live.signals = recorded.outputs, recorded.signals
    # Nothing starts of a run that its mail, or its deadline, may end.
    late = _late(run, shell.clock.now())
    live.settling = bool(loaded.mail or late)
    live.work.held = live.settling or run.paused
    shell.enter(live, run)
    if recorded.retried == recorded.seq:
        shielded(shell.feed.retried, live, run)
    if late:
        live.timers.disarm(DEADLINE)
    if is_given_up(machine):
        if (grace := run.nodes.get(GRACE)) is not None and grace.wake_at is not None:
            shell.effects.wait(live, GRACE, grace.task, grace.wake_at)
        live.post(loaded.mail, *late)
        return live
    _go_on(shell.effects, live, recorded, loaded.run.not_before, loaded.run.ready_at)
    arm_beginning(live, loaded.run.not_before, loaded.run.created)
    live.post(loaded.mail, *late)
    if not live.dead:
        ask_when_due(shell, live, loaded.mail, loaded.run.not_before)
    if not live.dead:
        live.work.start()
    return live


def _late(run: Run, now: int) -> tuple[DeadlineReached, ...]:
    """What the run is to be told after its mail, where its deadline came while nobody held it."""
    over = run.deadline is not None and run.deadline <= now and run.stopping is None
    return (DeadlineReached(),) if over else ()


def _tell_of_crashes(claim: Claim, name: str) -> None:
    if claim.crashes:
        # One death is what a run is made to survive; several in a row may be the run's doing.
        _log.log(
            logging.WARNING if claim.crashes >= LONE_CRASHES else logging.INFO,
            "%s: its owners died %d time(s) in a row without getting on", name, claim.crashes,
        )  # fmt: skip


async def _machine(
    shell: Shell, claim: Claim, definition: Definition[Any, Any], loaded: LoadedRun,
    recorded: Recorded,
) -> Machine:  # fmt: skip
    """The run's machine where its journal ends. Code that cannot go on keeps nobody from ending
    its run."""
    run, key = recorded.run, claim.key
    machine = cast("Machine", definition.machine(run, shell.deps))
    to_end = is_over(run, shell.clock.now()) or any(map(ends_stalled, loaded.mail))
    why = shell.given_up.pop(key, "")
    if claim.crashes >= LONE_CRASHES:
        why = f"the workers that ran it died {claim.crashes} times in a row"
    if to_end and why and isinstance(machine, CodeMachine):
        give_up(machine, why)
        return machine

    async def read(key: bytes, place: tuple[int, int]) -> bytes:
        (value,) = await shell.store.payloads(key, [place])
        return value

    try:
        await fetch_context(read, recorded, key)
    except PayloadMissing as error:
        if not to_end or not isinstance(machine, CodeMachine):
            raise
        give_up(machine, str(error))
        return machine
    await bring_back(
        machine, recorded.transitions, recorded.outputs,
        lambda places: shell.store.payloads(key, places), to_end=to_end,
    )  # fmt: skip
    return machine


def until(loaded: LoadedRun, now: int) -> int:
    """When a run that cannot be brought to life is due all the same (see Stall)."""
    try:
        return ends_by(read_journal(loaded).run, now)
    except Exception:  # it may be the journal that cannot be read
        late = loaded.run.deadline
        return NEVER if late is None or late <= now else late


def _go_on(
    effects: Effects, live: LiveRun, recorded: Recorded, not_before: int, ready_at: int
) -> None:
    """Dispatch what is pending, arm what waits. A delayed start waits for its time, although
    somebody may have sent it something before. `ready_at`: since when nobody had the run."""
    now = effects.holder.clock.now()
    if getattr(live.machine, "undoes", False):
        live.work.before = _perhaps_begun(recorded, not_before, ready_at, now)
        _remember(recorded.run, live.work.before)
    for node, state in recorded.run.nodes.items():
        if state.status == "pending":
            live.inputs[node] = recorded.inputs[node]
            if state.child is not None:  # another run's end is waited for, or its turn to be asked
                if when := state.not_before or state.wake_at:
                    live.inputs[node].timed = state.wake_at is not None
                    # Decided with a start that was delayed: it counts from then.
                    late = 0 if state.attempt else max(0, not_before - state.first_due)
                    effects.wait(live, node, state.task, when, late)
                continue
            if halts(recorded.run):  # whoever was at it is gone, and it is not begun again
                not_begun(live, state.task, node, state.attempt)
                continue
            due = max(recorded.due.get(node, 0), not_before)
            effects.launches.at(live, node, state.task, state.attempt, due)
        elif state.wake_at is not None:
            effects.wait(live, node, state.task, state.wake_at)


def _perhaps_begun(
    recorded: Recorded, not_before: int, ready_at: int, now: int
) -> frozenset[tuple[str, int]]:
    """The attempts that somebody who had the run before may have begun. What a worker had that
    died, it may have, whatever the clock shows now: that may have been set back. Else nobody had
    the run since `ready_at` (0: that is not known): an attempt that was due only then had not
    begun, unless something was recorded after its time. Of a run that is stopping none is still to
    come: that would have ended with the order to stop, by the clock of whoever gave it."""
    run, found = recorded.run, []
    stopping = halts(run)
    for node, state in run.nodes.items():
        if state.status == "pending" and state.child is None and node not in recorded.held:
            due = max(recorded.due.get(node, 0), not_before)
            first = max(due, state.first_due)
            begun = first < ready_at if ready_at else stopping or due <= now
            if begun or first < run.at or node in recorded.lost:
                found.append((state.task, state.attempt))
    return frozenset(found)


def _remember(run: Run, begun: frozenset[tuple[str, int]]) -> None:
    """That nobody knows what these did, for a decision that is made before their time comes."""
    for node, state in run.nodes.items():
        if state.not_before and (state.task, state.attempt) in begun:
            run.nodes[node] = replace(state, unknown=True)
