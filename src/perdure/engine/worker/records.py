"""Records: what is told of a run as a whole once it has ended, to listeners and to telemetry.

Read back from the journal, and only where somebody wants it: what was recorded elsewhere belongs to
it as well, and nothing has to be remembered while runs go on. Journals may be long, and many runs
may end at once: few are read at a time, page by page.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Final

import msgspec

from perdure.codec.failures import failure_from
from perdure.codec.journal import decode_row
from perdure.engine.outages import READING
from perdure.feed.journal import take
from perdure.feed.record import record_of
from perdure.feed.view import RunView
from perdure.model.errors import RunFailed, StoreError
from perdure.model.failure import FailureRecord
from perdure.stores.paging import PAGE
from perdure.telemetry.runs import tell_run
from perdure.telemetry.service import OPENTELEMETRY, telemetry_of

if TYPE_CHECKING:
    from perdure.engine.listeners import Listeners
    from perdure.engine.runs.live_run import LiveRun
    from perdure.engine.worker.shell import Shell
    from perdure.kernel.actions import FinishRun
    from perdure.telemetry.service import Telemetry

_log = logging.getLogger("perdure.engine")

#: Seconds between tries of a store that does not answer.
PAUSE: Final = 0.5
#: Journals that are read at a time; of other runs that ended little is kept until their turn.
AT_ONCE: Final = 8


class _Ended(msgspec.Struct, frozen=True):
    """A run whose record is to be made: what is left of it in memory."""

    key: bytes
    workflow: str
    id: str
    planned: tuple[str, ...]
    trace: dict[str, str] | None
    failure: FailureRecord | None


class Records:
    """Of the runs of one engine. `wanted`: some listener is to hear of them."""

    def __init__(self, shell: Shell, listeners: Listeners) -> None:
        self._shell = shell
        self._listeners = listeners
        self._making: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Semaphore(AT_ONCE)
        self.wanted = False

    def ended(self, live: LiveRun, action: FinishRun) -> None:
        """A run's end is durable."""
        shell = self._shell
        telemetry: Telemetry | None = None
        if shell.telemetry is not None or OPENTELEMETRY in sys.modules:
            telemetry = telemetry_of(shell.telemetry)
        if telemetry is not None or self.wanted:
            ended = _Ended(
                live.key, live.workflow, live.run_id, live.definition.planned, live.run.trace,
                action.failure,
            )  # fmt: skip
            making = shell.tasks.spawn(self._make(ended, telemetry))
            self._making.add(making)
            making.add_done_callback(self._making.discard)

    async def close(self, seconds: float) -> None:
        """Let those be told that are being made, for so long at most."""
        if self._making:
            _, late = await asyncio.wait(self._making, timeout=seconds)
            if late:
                _log.warning(
                    "%d run(s) that ended are not told of as a whole: the store has not given "
                    "their journals", len(late),
                )  # fmt: skip

    async def _make(self, ended: _Ended, telemetry: Telemetry | None) -> None:
        async with self._reading:
            view = await self._view(ended)
        if view is None or view.ended is None:
            return  # it is gone, or goes on again
        failure = None if ended.failure is None else failure_from(ended.failure, RunFailed)
        record = record_of(view, failure)
        self._listeners.tell(record)
        if telemetry is not None:
            kind = "" if ended.failure is None else ended.failure.kind
            tell_run(
                telemetry, record.workflow, record.outcome, kind, record.started, record.ended,
                ended.trace,
            )  # fmt: skip

    async def _view(self, ended: _Ended) -> RunView | None:
        """How the run stands by its journal, of which a page is held at a time; None where it is
        not there any more."""
        shell, view, seq = self._shell, RunView(ended.workflow, ended.id), 0
        while True:
            try:
                rows = await shell.store.rows(ended.key, seq, PAGE)
            except StoreError as error:
                shell.outages.note(READING, error)
                await asyncio.sleep(PAUSE)
                continue
            shell.outages.note(READING, None)
            for row in rows:
                take(view, decode_row(row.body), ended.planned)
                seq = row.seq
            if len(rows) < PAGE:
                return view if seq else None
            await asyncio.sleep(0)  # a store in memory never waits: others have their turn
