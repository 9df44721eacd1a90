"""What the store says of a run, as users see it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from perdure.codec.failures import failure_from
from perdure.model.errors import Failure, RunFailed
from perdure.model.failure import FailureRecord
from perdure.model.moments import moment
from perdure.model.status import RunStatus
from perdure.stores.answers import RunRow


class RunInfo(msgspec.Struct, frozen=True):
    """What the store says of a run. Times are aware, UTC. `stalled`: why it cannot go on."""

    id: str
    workflow: str
    version: str
    status: RunStatus
    metadata: Mapping[str, str]
    created: datetime
    finished: datetime | None
    failure: Failure | None
    stalled: str | None = None


def info_of(row: RunRow) -> RunInfo:
    """A stored run, as users see it."""
    failure: Failure | None = None
    if row.failure is not None:
        record = msgspec.json.decode(row.failure, type=FailureRecord)
        failure = failure_from(record, RunFailed)
    return RunInfo(
        id=row.id,
        workflow=row.definition,
        version=row.version,
        status=row.status,
        metadata=msgspec.json.decode(row.metadata),
        created=moment(row.created),
        finished=None if row.finished is None else moment(row.finished),
        failure=failure,
        stalled=row.stalled,
    )
