"""History: a journal as people read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from perdure.codec.journal import decode_row
from perdure.stores.port import LoadedRun

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def told(loaded: LoadedRun) -> Iterator[Mapping[str, Any]]:
    """One mapping per recorded action: `seq`, `time`, `do`, and the action's own fields, with
    attempts counted from 1 (D-2)."""
    for row in loaded.journal:
        for transition in decode_row(row.body):
            for action in transition.actions:
                record = {
                    "seq": row.seq,
                    "time": _EPOCH + timedelta(microseconds=transition.at),
                    "writer": row.writer,
                    **msgspec.to_builtins(action),
                }
                if "attempt" in action.__struct_fields__:
                    record["attempt"] = action.attempt + 1
                yield record
