"""Run: a handle on one run, from any process. Having one proves nothing about the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from msgspec import Raw

from perdure.client.history import APART, told
from perdure.client.messages import addressed, key_of
from perdure.client.outcome import failure_of
from perdure.client.retrying import KEEP, retry
from perdure.client.run_info import RunInfo, info_of
from perdure.client.viewing import viewing
from perdure.drivers.native import NativeDriver
from perdure.feed.view import RunView
from perdure.model.duration_forms import Duration
from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import (
    InvalidRequest,
    NotFound,
    RunFinished,
    TimedOut,
)
from perdure.model.names import check_run_id
from perdure.model.status import RunStatus
from perdure.stores.answers import RunRow
from perdure.stores.paging import rows_of
from perdure.telemetry.observation import UNOBSERVED

if TYPE_CHECKING:
    from perdure.client.reach import Reach
    from perdure.flow.signal import Channel, Signal
    from perdure.model.definition import Definition

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Run(Generic[T_co]):
    """One run of a definition, known by workflow name and id. Methods on a bad id raise
    InvalidId; on a run that is not there NotFound."""

    __slots__ = ("_definition", "_former", "_id", "_reach", "_workflow")

    def __init__(self, reach: Reach, of: Definition[Any, T_co] | str, id: str) -> None:
        self._reach = reach
        self._id = id
        self._definition: Definition[Any, T_co] | None
        #: Names under which the run may be recorded instead; none once it was looked for.
        self._former: tuple[str, ...]
        if isinstance(of, str):
            self._definition, self._workflow, self._former = None, of, ()
        else:
            self._definition, self._workflow, self._former = of, of.name, of.aliases

    @property
    def id(self) -> str:
        """The run's id, unique among the runs of its workflow."""
        return self._id

    @property
    def workflow(self) -> str:
        """The name of the definition it runs. Of one that had other names before it is the name
        the run is recorded under, once something was asked of the run."""
        return self._workflow

    async def _named(self) -> str:
        """The name the run is recorded under."""
        former, driver = self._former, self._reach.driver
        if not former:
            return self._workflow
        for name in (self._workflow, *former):
            try:
                await driver.status(name, self._id)
            except NotFound:
                continue
            self._workflow, self._former = name, ()
            break
        return self._workflow

    async def result(  # the caller's own bound, in perdure's durations
        self,
        *,
        timeout: Duration | None = None,
    ) -> T_co:
        """Wait for the end. The output, or raises RunFailed (or the failure's own class),
        Canceled, TimedOut. The output of a workflow is of the type that its function returns;
        by name, and of a graph, it is what JSON makes it.

        `timeout` bounds this wait only, never the run: when it is over, TimedOut is raised with
        kind "workflow.timeout" and the run goes on. A run that is stalled may go on, and is
        waited for; why it is stalled is logged once."""
        if timeout is None:
            call = self._reach.observed("result", self._workflow)
            if call is UNOBSERVED:
                return await self._result()
            with call:
                return await self._result()
        seconds = microseconds(timeout, "timeout") / SECOND
        return await self._result_by(seconds, seconds)

    async def _result_by(self, left: float, seconds: float) -> T_co:
        """The result, if it comes within what is `left` of so many seconds."""
        with self._reach.observed("result", self._workflow):
            try:
                async with asyncio.timeout(left):
                    return await self._result()
            except TimedOut:
                raise
            except TimeoutError:
                raise TimedOut(f"{self} did not end within {seconds:g} s; it goes on") from None

    async def _result(self) -> T_co:
        id, driver, definition = self._id, self._reach.driver, self._definition
        if type(driver) is not NativeDriver:  # that one asks, where it does not know the run
            check_run_id(id)
        name = await self._named() if self._former else self._workflow
        outcome = await driver.result(name, id)
        if outcome.status != "completed":
            raise failure_of(outcome, self)
        result: Any = None
        if outcome.output is not None:
            codec = self._reach.codec
            if definition is None:
                result = codec.decode(outcome.output)
            else:
                result = definition.read_result(Raw(outcome.output), codec)
        return result  # type: ignore[no-any-return]

    async def status(self) -> RunStatus:
        """`running`, `completed`, `failed` or `canceled`."""
        with self._reach.observed("status", self._workflow):
            check_run_id(self._id)
            return await self._reach.driver.status(await self._named(), self._id)

    async def describe(self) -> RunInfo:
        """What the store says of the run."""
        return info_of(await self._row())

    async def view(self) -> RunView:
        """How its steps stand, whichever process works on it: every step of the plan; of code, the
        calls so far. `view().to_dict()` is what a dashboard draws. Raises NotFound."""
        return (await viewing(self._reach.store, await self._row())).view

    async def history(self, *, after: int = 0) -> AsyncIterator[Mapping[str, Any]]:
        """What was recorded, oldest first: one mapping per action, with its time and the place
        of its journal row (`seq`); attempts are counted from 1. `after`: only what stands in
        rows after this one, read without those before it."""
        row = await self._row()
        after = max(after, row.base_seq - 1)
        async for stored in rows_of(self._reach.store, row.key, after):
            for record in told((stored,)):
                for name in APART:
                    number = record.pop(f"{name}_ref", None)
                    if number is not None:
                        place = (record["seq"], number)
                        data = (await self._reach.store.payloads(row.key, [place]))[0]
                        record[name] = self._reach.codec.decode(data)
                yield record

    # ------------------------------------------------------------------ telling it something

    @overload
    async def signal(
        self, to: Signal[T] | Channel[T], value: T, /, *, dedupe_key: str | None = None
    ) -> None: ...
    @overload
    async def signal(
        self, to: str, value: object = None, /, *, dedupe_key: str | None = None
    ) -> None: ...
    async def signal(self, to: Any, value: Any = None, /, *, dedupe_key: str | None = None) -> None:
        """Send a named value; durable when this returns.

        to: a Signal or Channel, also a keyed one, or the signal's name. value: of the signal's
        type; to a name, anything JSON can hold. One that nothing waits for yet is kept.
        dedupe_key: a second message to this run with the same key changes nothing. Raises
        NotFound when the run is not there or has ended, InvalidRequest for a value or name that
        cannot be sent (PayloadTooLarge for one over the limit), StoreError when it is not known
        whether it was recorded: send it again, with the same dedupe_key.
        """
        reach = self._reach
        typed = self._definition is not None and self._definition.typed
        with reach.observed("signal", self._workflow):
            name, body = addressed(reach.codec, to, value, typed=typed)
            key = None if dedupe_key is None else key_of(dedupe_key)
            check_run_id(self._id)
            await reach.driver.signal(await self._named(), self._id, name, body, key)
        reach.telling.signaled(self._workflow, self._id, name)

    async def cancel(self, reason: str = "") -> None:
        """Ask the run to end as canceled. What is under way is asked to stop, and how it ends
        counts for nothing. A run that has ended already stays as it is, quietly. Raises NotFound.
        """
        with self._reach.observed("cancel", self._workflow):
            if not isinstance(reason, str):
                raise InvalidRequest(f"the reason of a cancel must be a text, not {reason!r}")
            check_run_id(self._id)
            await self._reach.driver.cancel(await self._named(), self._id, reason)
        self._reach.telling.canceled(self._workflow, self._id)

    async def pause(self) -> None:
        """Let the run start no further attempt. What is under way ends and is recorded; timers
        and signals go on being recorded, the run's deadline runs on. Raises NotFound,
        RunFinished."""
        await self._tell("pause")

    async def unpause(self) -> None:
        """Let a paused run go on; a stalled one is tried again. Raises NotFound, RunFinished."""
        await self._tell("unpause")

    async def retry(
        self,
        *,
        from_node: str | None = None,
        failed: bool = False,
        input: Any = KEEP,
        config: Any = KEEP,
    ) -> None:
        """Let a run that has ended go on, on the definition's newest version.

        from_node: do this node and all that comes after it again; failed=True: every node that
        failed and all that comes after those. What else completed is kept. input, config:
        replace the run's. Its deadline begins anew; a run that was paused stays so: nothing
        starts until it is unpaused. Raises NotFound, RunActive while the run has
        not ended, InvalidRequest for a node that is not there, and with failed=True where what
        could not be undone would be done again; NonDeterminism for code that does not do what it
        did; then nothing has changed.
        """
        if (from_node is None) != failed:
            raise InvalidRequest("retry: give either from_node='...' or failed=True")
        check_run_id(self._id)
        name = await self._named()
        known = self._definition  # of a graph, the store knows the newest version
        of = name if known is None or not known.typed else known.under(name)
        await retry(self._reach, of, self._id, from_node, input, config)

    async def _tell(self, kind: str) -> None:
        posted = await self._reach.native.tell(await self._named(), self._id, kind)
        if posted.outcome == "finished":
            raise RunFinished(f"{self} has ended: only a retry lets it go on")

    async def _row(self) -> RunRow:
        return await self._reach.native.row(await self._named(), self._id)

    def __repr__(self) -> str:
        return f"<Run {self}>"

    def __str__(self) -> str:
        return f"{self._workflow}/{self._id}"
