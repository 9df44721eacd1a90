"""The record by which a store takes a run from a worker that died: it moves the fence. And what a
store says of a run whose workers die one after the other.

All below is the same in every store, since a journal moves between them (export).
"""

from __future__ import annotations

from typing import Final

from perdure.codec.journal import encode_row
from perdure.kernel.actions import Claimed, Transition

#: Tries are numbered from 1 by their writers; a takeover is never resent, so it needs no number.
TAKEOVER_COMMIT: Final = 0

#: Kinds of messages by which somebody acts on a run that cannot go on by itself.
ENDS_STALL: Final = frozenset({"unpause", "cancel"})
#: The name under which such a message is kept that came to a stalled run: whoever sent it could
#: know how the run stood.
ON_A_STALL: Final = "stalled"


def takeover_body(worker: str, at: int) -> bytes:
    """The body of the journal row that frees a run, written on behalf of `worker`."""
    return encode_row([Transition(at, [Claimed(worker)])])[0]


def crash_reason(crashes: int) -> str:
    """Why a run is stalled that took too many workers with it."""
    return (
        f"the workers that held this run died {crashes} times in a row before it got any further: "
        "find out what kills them, then unpause or cancel it"
    )
