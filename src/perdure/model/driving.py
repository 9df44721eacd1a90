"""What a driver is asked to start, and how a run ended: the same for every engine underneath."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from perdure.model.definition import Definition
from perdure.model.failure import FailureRecord


class StartRequest(msgspec.Struct, gc=False):
    """What a caller asks to start. Values are JSON text. `delay` in µs; the run's deadline counts
    from then. `trace`: the carrier of the trace that the start belongs to, to be kept beside the
    run, given to the children it starts, and read where its steps are executed."""

    definition: Definition[Any, Any]
    id: str
    input: Raw | None = None
    config: Raw | None = None
    metadata: Mapping[str, str] = {}
    start_node: str | None = None
    delay: int = 0
    trace: Mapping[str, str] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """How a run ended: `completed`, `failed` or `canceled`. `output` is JSON text."""

    status: str
    output: bytes | None = None
    failure: FailureRecord | None = None
