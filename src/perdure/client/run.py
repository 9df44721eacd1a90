"""Run: a handle on one run, from any process. Having one proves nothing about the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from perdure.client.history import APART, told
from perdure.client.outcome import value_of
from perdure.codec.failures import failure_from
from perdure.model.durations import SECOND, Duration, microseconds
from perdure.model.errors import Failure, RunFailed, TimedOut
from perdure.model.failure import FailureRecord
from perdure.model.names import check_run_id
from perdure.model.status import RunStatus
from perdure.stores.port import RunRow

if TYPE_CHECKING:
    from perdure.client.client import Client

T_co = TypeVar("T_co", covariant=True)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


class Run(Generic[T_co]):
    """One run of a definition, known by workflow name and id. Methods on a bad id raise
    InvalidId; on a run that is not there NotFound."""

    __slots__ = ("_client", "_id", "_workflow")

    def __init__(self, client: Client, workflow: str, id: str) -> None:
        self._client = client
        self._workflow = workflow
        self._id = id

    @property
    def id(self) -> str:
        """The run's id, unique among the runs of its workflow."""
        return self._id

    @property
    def workflow(self) -> str:
        """The name of the definition it runs."""
        return self._workflow

    async def result(  # the caller's own bound, in perdure's durations
        self,
        *,
        timeout: Duration | None = None,  # noqa: ASYNC109
    ) -> T_co:
        """Wait for the end. The output, or raises RunFailed (or the failure's own class),
        Canceled, TimedOut. `timeout` bounds this wait only, never the run: when it is over,
        TimedOut is raised with kind "workflow.timeout" and the run goes on."""
        if timeout is None:
            return await self._result()
        seconds = microseconds(timeout, "timeout") / SECOND
        try:
            async with asyncio.timeout(seconds):
                return await self._result()
        except TimedOut:
            raise
        except TimeoutError:
            raise TimedOut(f"{self} did not end within {seconds:g} s; it goes on") from None

    async def _result(self) -> T_co:
        client = self._client
        check_run_id(self._id)
        outcome = await client._ended_here(self._workflow, self._id)
        if outcome is None:
            outcome = await client._waiters.wait(await self._row())
        result: T_co = value_of(outcome, client._codec, self)
        return result

    async def status(self) -> RunStatus:
        """`running`, `completed`, `failed` or `canceled`."""
        return (await self._row()).status

    async def describe(self) -> RunInfo:
        """What the store says of the run."""
        return info_of(await self._row())

    async def history(self) -> AsyncIterator[Mapping[str, Any]]:
        """What was recorded, oldest first: one mapping per action, with its time and the place
        of its journal row (`seq`); attempts are counted from 1."""
        await self._client._opened()
        row = await self._row()
        loaded = await self._client._store.load(row.key)
        for record in told(loaded):
            for name in APART:
                number = record.pop(f"{name}_ref", None)
                if number is not None:
                    place = (record["seq"], number)
                    data = (await self._client._store.payloads(row.key, [place]))[0]
                    record[name] = self._client._codec.decode(data)
            yield record

    async def _row(self) -> RunRow:
        check_run_id(self._id)
        await self._client._opened()
        return await self._client._store.describe(self._workflow, self._id)

    def __repr__(self) -> str:
        return f"<Run {self}>"

    def __str__(self) -> str:
        return f"{self._workflow}/{self._id}"


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
        created=time_of(row.created),
        finished=None if row.finished is None else time_of(row.finished),
        failure=failure,
        stalled=row.stalled,
    )


def time_of(microseconds_since_epoch: int) -> datetime:
    """An aware UTC datetime of a stored time."""
    return _EPOCH + timedelta(microseconds=microseconds_since_epoch)
