"""The record by which a store takes a run from a worker that died: it moves the fence.

Both numbers below are the same in every store, since a journal moves between them (export).
"""

from __future__ import annotations

from typing import Final

from perdure.codec.journal import encode_row
from perdure.kernel.actions import Claimed, Transition

#: Tries are numbered from 1 by their writers; a takeover is never resent, so it needs no number.
TAKEOVER_COMMIT: Final = 0


def takeover_body(worker: str, at: int) -> bytes:
    """The body of the journal row that frees a run, written on behalf of `worker`."""
    return encode_row([Transition(at, [Claimed(worker)])])[0]
