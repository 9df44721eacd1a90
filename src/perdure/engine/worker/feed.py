"""Publishing the feed: listeners are told what became durable, as perdure.feed.recorded has it.

An Observer like any other: with no listener it is not there and costs nothing.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from perdure.engine.listeners import Listen, Listeners
from perdure.engine.worker.records import Records
from perdure.feed import (
    ReportIgnored,
    WorkflowRetried,
    WorkflowStarted,
    WorkflowStepStarted,
)
from perdure.feed.record import WorkflowRecord
from perdure.feed.recorded import events_of
from perdure.feed.view import DONE, RUNNING, trigger_of
from perdure.kernel.onward import Decided
from perdure.kernel.run import GRACE
from perdure.model.moments import moment

if TYPE_CHECKING:
    from perdure.engine.attempts.orders import Order
    from perdure.engine.runs.live_run import LiveRun
    from perdure.engine.worker.shell import Shell
    from perdure.kernel.run import NodeState, Run


class Feed:
    """The listeners of one engine."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._listeners = Listeners(shell.tasks.spawn)
        self.records = Records(shell, self._listeners)

    def listen(self, kind: type[Any], call: Listen) -> None:
        """Call with every event of this class from now on."""
        self._listeners.add(kind, call)
        if issubclass(WorkflowRecord, kind):
            self.records.wanted = True
            return
        if self not in self._shell.observers:
            self._shell.observers.append(self)
            self._shell.on_ignored = self.ignored
        if issubclass(WorkflowStepStarted, kind):
            self._shell.dispatcher.on_started = self.started

    async def close(self, seconds: float) -> None:
        """Let the listeners hear what is left, for so long at most, records included."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        await self.records.close(seconds)
        await self._listeners.close(max(until - loop.time(), 0))

    # ------------------------------------------------------------------ what happens

    def entered(self, live: LiveRun, run: Run) -> None:
        """See Observer.entered."""
        if live.seq == 1:
            at = moment(run.at)
            definition = live.definition
            self._publish(
                WorkflowStarted, live, time=at, version=definition.version,
                steps=definition.planned, trigger=trigger_of(run.metadata),
            )  # fmt: skip

    def retried(self, live: LiveRun, run: Run) -> None:
        """A run that had ended came into memory, and nothing happened to it since its retry."""
        definition = live.definition
        standing = {
            node: state
            for node, of in run.nodes.items()
            if node != GRACE and (state := _standing(of)) is not None
        }
        self._publish(
            WorkflowRetried, live, time=moment(run.at), version=definition.version,
            steps=definition.planned, trigger=trigger_of(run.metadata), standing=standing,
        )  # fmt: skip

    def recorded(self, live: LiveRun, transition: Decided) -> None:
        """See Observer.recorded."""
        at = moment(transition.at)
        for action in transition.actions:
            for kind, fields in events_of(live, action):
                self._publish(kind, live, time=at, **fields)

    def started(self, order: Order) -> None:
        """An attempt begins."""
        at = moment(self._shell.clock.now())
        self._listeners.tell(
            WorkflowStepStarted(
                workflow=order.workflow, run_id=order.run_id, time=at, step=order.node,
                attempt=order.number + 1,
            )
        )  # fmt: skip

    def ignored(self, live: LiveRun, event: Any, reason: str) -> None:
        """A report counted for nothing."""
        attempt = getattr(event, "attempt", None)
        if attempt is not None:
            at = moment(self._shell.clock.now())
            self._publish(
                ReportIgnored, live, time=at, step=event.node, attempt=attempt + 1,
                reason=reason,
            )  # fmt: skip

    def _publish(self, kind: type[Any], live: LiveRun, **fields: Any) -> None:
        self._listeners.tell(kind(workflow=live.definition.name, run_id=live.run_id, **fields))


def _standing(node: NodeState) -> str | None:
    """The state of a step that is not about to begin."""
    if node.status == "pending":
        return RUNNING if node.child is not None else None
    return DONE if node.status == "completed" else node.status
