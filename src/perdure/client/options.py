"""What `start` and `run` may be told, as keywords."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict

from perdure.model.durations import Duration

IfExists = Literal["raise", "join"]


class StartOptions(TypedDict, total=False):
    """id: unique among the runs of the definition; left out, a UUIDv7 is made. delay: how long
    until the run is due. metadata: text by name, shown beside the run. config, start_node: for
    graphs. if_exists: "raise" AlreadyStarted, or "join" the run that is there. trace: the carrier
    of the trace that the start belongs to, by default the current one; only from whom you trust.
    using: the caller's own transaction (not there yet)."""

    id: str | None
    delay: Duration
    metadata: Mapping[str, str] | None
    config: Mapping[str, Any] | None
    start_node: str | None
    if_exists: IfExists
    trace: Mapping[str, str] | None
    using: object


class RunOptions(StartOptions, total=False):
    """As for `start`. idempotency_key: the id, joined when it exists. timeout: bounds the wait
    for the result, never the run."""

    idempotency_key: str | None
    timeout: Duration | None
