"""Leaving: how a run is let go of that cannot go on here.

It is dropped whole at once, and decides nothing any more. A last row says what becomes of it, once
the row under way is answered; whoever holds it next goes on with what is durable.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from perdure.engine.coding import ends_by
from perdure.engine.rows import leaving_row
from perdure.stores.rows import Release, RunChange, Stall

if TYPE_CHECKING:
    from perdure.engine.live_run import LiveRun
    from perdure.engine.shell import Shell

_log = logging.getLogger("perdure.engine")


def stall(shell: Shell, live: LiveRun, reason: str) -> None:
    """The run cannot go on until somebody acts. It keeps its state and says why."""
    until = ends_by(live.run, shell.clock.now())
    _leave(shell, live, Stall(reason, live.mailbox.taken, until))


def load_again(shell: Shell, live: LiveRun) -> None:
    """What is not durable is dropped: whoever takes the run now decides it otherwise."""
    _leave(shell, live, Release(0))


def unwritable(shell: Shell, live: LiveRun, read: int, why: Any) -> None:
    """A row that applies so many messages can never be written. If one of them is to blame, the
    run is loaded again and refuses that one; else it stalls."""
    _log.error("%s/%s cannot be recorded: %s", live.definition.name, live.run_id, why)
    if shell.unwritten.blame(live.key, live.read, read, why):
        load_again(shell, live)
    else:
        stall(shell, live, f"its journal could not be written: {why}")


def leave_after(shell: Shell, live: LiveRun, verdict: Any) -> None:
    """The last row before the run is let go was answered."""
    if live.leaving is None:
        return
    if verdict == "refused":
        shell.drop(live)
        return
    if verdict not in ("accepted", "mine"):
        live.seq -= 1
    _write(shell, live, live.leaving)


def _leave(shell: Shell, live: LiveRun, change: RunChange) -> None:
    if live.dead:
        return
    live.die()
    live.leaving = change
    if live.under_way is None:
        _write(shell, live, change)


def _write(shell: Shell, live: LiveRun, change: RunChange) -> None:
    row = leaving_row(shell, live, live.read, change)
    shell.commits.submit(row, lambda verdict: shell.left(live, verdict))
