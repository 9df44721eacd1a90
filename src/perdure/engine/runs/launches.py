"""Launches: from a durable order to dispatch a task to an attempt that somebody may take: at its
time, and with what it is given read."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw

from perdure.engine.attempts.orders import Order
from perdure.engine.handlers.port import Around
from perdure.engine.runs.halting import halts, not_begun
from perdure.engine.runs.surroundings import Apart, around, keep, places
from perdure.model.errors import PayloadMissing

if TYPE_CHECKING:
    from perdure.engine.runs.holder import Holder
    from perdure.engine.runs.live_run import LiveRun

_log = logging.getLogger("perdure.engine")


class Inputs(msgspec.Struct, gc=False):
    """A task's stored input: where it stands, and which of its strings are secrets' templates."""

    #: None: a call without arguments.
    place: Raw | tuple[int, int] | None
    secrets: Mapping[str, str]
    #: A timer says when its end is waited for no more.
    timed: bool = False


class Launches:
    """Those of an engine's runs. `LiveRun.inputs` are the inputs of a run's tasks that may still be
    attempted."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder

    def at(self, live: LiveRun, node: str, task: str, number: int, not_before: int) -> None:
        """Start an attempt, or see that it starts at its time."""
        if not is_wanted(live, node, task, number):
            return
        if not_before:
            if not_before > self._holder.clock.now():
                due = partial(self._due, live, node, task, number, not_before)
                live.timers.arm(node, not_before, due)
                return
            if getattr(live.machine, "undoes", False):  # however far the clock is set back now
                live.run.at = max(live.run.at, not_before + 1)
        self.now(live, node, task, number, live.inputs[node])

    def now(self, live: LiveRun, node: str, task: str, number: int, stored: Inputs) -> None:
        """An attempt may start: it waits for somebody who takes it."""
        handling = live.machine.handlings[node]
        place = stored.place
        if isinstance(place, tuple):
            live.fetching += 1
            self._holder.tasks.spawn(self._fetch_input(live, node, task, number, stored))
            return
        told: Around | None = None
        if handling.around:
            found = around(live, handling)
            if isinstance(found, list):
                live.fetching += 1
                fetch = self._fetch_around(live, node, task, number, stored, found)
                self._holder.tasks.spawn(fetch)
                return
            told = found
        work = live.work
        order = Order(
            live.workflow, live.run_id, node, handling.type, task, number, UNSET,
            handling.timeout, handling.step, told, None, place, stored.secrets,
        )  # fmt: skip
        if work.before:
            order.before = (task, number) in work.before
        work.orders.append(order)

    def _due(self, live: LiveRun, node: str, task: str, number: int, not_before: int = 0) -> None:
        self.at(live, node, task, number, not_before)
        live.work.start()

    async def _fetch_input(
        self, live: LiveRun, node: str, task: str, number: int, stored: Inputs
    ) -> None:
        assert isinstance(stored.place, tuple)
        found = await self._fetched(live, f"the input of node {node}", [stored.place])
        if found is not None:
            stored.place = Raw(found[0])
            self._go_on(live, node, task, number, stored)

    async def _fetch_around(
        self, live: LiveRun, node: str, task: str, number: int, stored: Inputs, apart: Apart
    ) -> None:
        found = await self._fetched(live, f"what node {node} reads", places(apart))
        if found is not None:
            keep(live, apart, found)
            self._go_on(live, node, task, number, stored)

    async def _fetched(
        self, live: LiveRun, what: str, wanted: Iterable[tuple[int, int]]
    ) -> list[bytes] | None:
        """Values that stand apart; None where they cannot be had, and the run stalls."""
        try:
            return [await self._holder.read(live.key, place) for place in wanted]
        except PayloadMissing as error:
            live.stall(f"{what} is gone: {error}")
        except Exception as error:
            _log.exception("%s/%s cannot go on", live.definition.name, live.run_id)
            live.stall(f"{what} could not be read: {error!r}")
        finally:
            live.fetching -= 1
        return None

    def _go_on(self, live: LiveRun, node: str, task: str, number: int, stored: Inputs) -> None:
        # Meanwhile the run may have gone, or nobody may want the attempt any more.
        if not live.dead and live.inputs.get(node) is stored:
            self._due(live, node, task, number)


def is_wanted(live: LiveRun, node: str, task: str, number: int) -> bool:
    """Decisions run ahead of effects: what has been given up by now, or is another task's node, is
    not begun at all."""
    run = live.run
    state = run.nodes.get(node)
    if state is None or state.task != task or state.attempt != number or state.status != "pending":
        return False
    if run.reason and halts(run):
        not_begun(live, task, node, number)
        return False
    return True
