"""Leaving: how a run is let go of that cannot go on here.

It is dropped whole at once, and decides nothing any more. A last row says what becomes of it, once
the row under way is answered; whoever holds it next goes on with what is durable.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from perdure.engine.runs.coding import ends_by
from perdure.engine.runs.rows import leaving_row
from perdure.stores.rows import Release, RunChange, Stall

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

_log = logging.getLogger("perdure.engine")


def stall(holder: Holder, live: LiveRun, reason: str) -> None:
    """The run cannot go on until somebody acts. It keeps its state and says why."""
    until = ends_by(live.run, holder.clock.now())
    _leave(holder, live, Stall(reason, live.mailbox.taken, until))


def load_again(holder: Holder, live: LiveRun) -> None:
    """What is not durable is dropped: whoever takes the run now decides it otherwise."""
    _leave(holder, live, Release(0))


def unwritable(holder: Holder, live: LiveRun, read: int, why: Any) -> None:
    """A row that applies so many messages can never be written. If one of them is to blame, the
    run is loaded again and refuses that one; else it stalls."""
    _log.error("%s/%s cannot be recorded: %s", live.definition.name, live.run_id, why)
    if holder.unwritten.blame(live.key, live.read, read, why):
        load_again(holder, live)
    else:
        stall(holder, live, f"its journal could not be written: {why}")


def leave_after(holder: Holder, live: LiveRun, verdict: Any) -> None:
    """The last row before the run is let go was answered."""
    if live.leaving is None:
        return
    if verdict == "refused":
        holder.drop(live)
        return
    if verdict not in ("accepted", "mine"):
        live.seq -= 1
    _write(holder, live, live.leaving)


def _leave(holder: Holder, live: LiveRun, change: RunChange) -> None:
    if live.dead:
        return
    live.die()
    live.leaving = change
    if live.under_way is None:
        _write(holder, live, change)


def _write(holder: Holder, live: LiveRun, change: RunChange) -> None:
    row = leaving_row(holder, live, live.read, change)
    holder.commits.submit(row, lambda verdict: holder.left(live, verdict))
