"""SavedRun: everything a store holds of one run, to be moved into another store.

Who owns the run, and when it is due, is the old store's alone and no part of it. Neither is
when it is to be purged: retention counts from the import.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from perdure.stores.answers import Mail, RunRow
from perdure.stores.rows import StoredDefinition


class SavedRow(msgspec.Struct, frozen=True, gc=False):
    """A journal row with the number of its writer's try."""

    seq: int
    at: int
    writer: str
    commit: int
    read: int
    body: bytes


class SavedPayload(msgspec.Struct, frozen=True, gc=False):
    """The large value `n` of the row `seq`."""

    seq: int
    n: int
    value: bytes


class SavedRun(msgspec.Struct, frozen=True, gc=False):
    """A run as of one moment. `mail` is the whole mailbox, numbered from 1 without gaps, so that
    dedupe keys hold on the other side. `definition` None: the store does not have it."""

    run: RunRow
    journal: Sequence[SavedRow]
    payloads: Sequence[SavedPayload] = ()
    mail: Sequence[Mail] = ()
    definition: StoredDefinition | None = None
