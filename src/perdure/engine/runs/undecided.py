"""What becomes of an event, or of a message, that could not be decided on.

Trouble with the store passes: the same is tried again. A message that does not apply is recorded
as refused. Whatever else it is, the run cannot go on and stalls with the reason. But code that
cannot go on keeps no run from its end: one that was cancelled while it was stalled, or whose time
is over, is let go and loaded again, to end without its code.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from perdure.engine.outages import READING
from perdure.engine.runs.coding import is_given_up, is_over
from perdure.engine.runs.leaving import load_again
from perdure.kernel.actions import Ignored, Refused, Transition
from perdure.kernel.code.machine import CodeMachine
from perdure.kernel.code.stuck import Interrupted, Stuck
from perdure.kernel.fold import fold_transition
from perdure.model.errors import PayloadMissing, PerdureError, StoreError
from perdure.stores.answers import Mail
from perdure.stores.takeover import ON_A_STALL

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

_log = logging.getLogger("perdure.engine")


def undecided(holder: Holder, live: LiveRun, came: Any, error: Exception) -> None:
    """`came`: the event or message at whose turn this error was raised."""
    name = f"{live.definition.name}/{live.run_id}"
    if isinstance(error, PayloadMissing):
        _cannot_go_on(holder, live, came, f"a value it needs is gone: {error}")
    elif isinstance(error, StoreError):
        holder.outages.note(READING, error)
        live.decide_later(came)
    elif isinstance(error, Interrupted):
        load_again(holder, live)
    elif isinstance(error, Stuck):
        _log.error("%s: %s", name, error)
        _cannot_go_on(holder, live, came, str(error))
    elif isinstance(error, PerdureError) and type(came) is Mail:
        _log.info("%s: refused a message: %s", name, error)
        live.refuse(came, error)
    else:
        _log.error("%s cannot go on", name, exc_info=error)
        _cannot_go_on(holder, live, came, f"the engine could not apply an event: {error}")


def noted(holder: Holder, live: LiveRun, action: Ignored | Refused) -> Transition:
    """What became of a message, as a record beside the machine's own; the snapshot is what folding
    it gives."""
    transition = Transition(max(holder.clock.now(), live.run.at), [action])
    fold_transition(live.run, transition)
    return transition


def _cannot_go_on(holder: Holder, live: LiveRun, came: Any, why: str) -> None:
    """The code may have run half-way: its snapshot says more than its journal, and is dropped."""
    cancelled = any(ends_stalled(one) for one in (came, *(live.inbox or ())))
    to_end = cancelled or is_over(live.run, holder.clock.now())
    # Where it was loaded to end already, and could not, loading it once more would not help.
    if to_end and isinstance(live.machine, CodeMachine) and not is_given_up(live.machine):
        holder.given_up[live.key] = why
        load_again(holder, live)
    else:
        live.stall(why)


def ends_stalled(came: Any) -> bool:
    """Whether this is a message by which somebody cancelled a run that was stalled. Where it was
    not, nobody meant to end it without its code: another worker may well have code that fits."""
    return type(came) is Mail and came.kind == "cancel" and came.name == ON_A_STALL
