"""Trace carriers: what says, as text by name, to which trace a start belongs.

Opaque here: whoever observes writes and reads one. It travels beside a run and never among its
metadata, is recorded as it was given, and no decision looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from perdure.model.errors import InvalidRequest

#: Bytes of a carrier's names and values together: a traceparent, a tracestate and a full baggage.
CARRIER_LIMIT: Final = 16 * 1024


def checked_carrier(trace: Any) -> dict[str, str] | None:
    """A copy of a carrier; None for an empty one. Raises InvalidRequest for what cannot be recorded
    as one."""
    if not trace:
        return None
    if not isinstance(trace, Mapping):
        raise InvalidRequest(f"trace must map text to text, and not be {type(trace).__name__}")
    carrier, size = dict(trace), 0
    for name, value in carrier.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise InvalidRequest("trace must map text to text: something in it is no text")
        try:
            size += len(name.encode()) + len(value.encode())
        except UnicodeEncodeError:
            raise InvalidRequest("trace holds text that is not valid Unicode") from None
    if size > CARRIER_LIMIT:
        raise InvalidRequest(f"trace has {size:,} bytes: at most {CARRIER_LIMIT:,}")
    return carrier
