"""Records: what is told of a run as a whole once it has ended, to listeners and to telemetry.

Read back from the journal, and only where somebody wants it: what was recorded elsewhere belongs to
it as well, and nothing has to be remembered while runs go on.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import TYPE_CHECKING, Final

from perdure.codec.failures import failure_from
from perdure.codec.journal import decode_row
from perdure.engine.outages import READING
from perdure.feed.journal import take
from perdure.feed.record import record_of
from perdure.feed.view import RunView
from perdure.model.errors import RunFailed, StoreError
from perdure.telemetry.runs import tell_run
from perdure.telemetry.service import OPENTELEMETRY, telemetry_of

if TYPE_CHECKING:
    from perdure.engine.listeners import Listeners
    from perdure.engine.live_run import LiveRun
    from perdure.engine.shell import Shell
    from perdure.kernel.actions import FinishRun
    from perdure.telemetry.service import Telemetry

_log = logging.getLogger("perdure.engine")

#: Seconds between tries of a store that does not answer.
PAUSE: Final = 0.5


class Records:
    """Of the runs of one engine. `wanted`: some listener is to hear of them."""

    def __init__(self, shell: Shell, listeners: Listeners) -> None:
        self._shell = shell
        self._listeners = listeners
        self._making: set[asyncio.Task[None]] = set()
        self.wanted = False

    def ended(self, live: LiveRun, action: FinishRun) -> None:
        """A run's end is durable."""
        shell = self._shell
        telemetry: Telemetry | None = None
        if shell.telemetry is not None or OPENTELEMETRY in sys.modules:
            telemetry = telemetry_of(shell.telemetry)
        if telemetry is not None or self.wanted:
            making = shell.spawn(self._make(live, action, telemetry))
            self._making.add(making)
            making.add_done_callback(self._making.discard)

    async def close(self, seconds: float) -> None:
        """Let those be told that are being made, for so long at most."""
        if self._making:
            await asyncio.wait(self._making, timeout=seconds)

    async def _make(self, live: LiveRun, action: FinishRun, telemetry: Telemetry | None) -> None:
        view = await self._view(live)
        if view is None or view.ended is None:
            return  # it is gone, or goes on again
        failure = None if action.failure is None else failure_from(action.failure, RunFailed)
        record = record_of(view, failure)
        self._listeners.tell(record)
        if telemetry is not None:
            kind = "" if action.failure is None else action.failure.kind
            tell_run(
                telemetry, record.workflow, record.outcome, kind, record.started, record.ended,
                live.run.trace,
            )  # fmt: skip

    async def _view(self, live: LiveRun) -> RunView | None:
        shell, view = self._shell, RunView(live.workflow, live.run_id)
        while True:
            try:
                rows = await shell.store.rows(live.key, 0)
            except StoreError as error:
                shell.outages.note(READING, error)
                await asyncio.sleep(PAUSE)
                continue
            shell.outages.note(READING, None)
            for row in rows:
                take(view, decode_row(row.body), live.definition.planned)
            return view if rows else None
