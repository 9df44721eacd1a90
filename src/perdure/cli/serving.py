"""Serving: an engine that works on all runs of its definitions, and tells what comes of them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from perdure.cli.exits import STORE, Trouble
from perdure.cli.logs import log_to
from perdure.cli.output import instant, moment_near, took
from perdure.cli.reasons import reason, run_reason
from perdure.client.engine import Engine
from perdure.engine.attempts.secrets import Secrets
from perdure.engine.handlers.http_options import HttpOptions
from perdure.engine.outages import unrecorded
from perdure.kernel.actions import CreateTask, FailTask, FinishRun, RetryTask
from perdure.kernel.onward import Decided
from perdure.model.moments import moment

if TYPE_CHECKING:
    from perdure.cli.progress import Screen
    from perdure.engine.runs.live_run import LiveRun
    from perdure.kernel.run import Run

#: Hears of one thing that happened.
Event: TypeAlias = Callable[[dict[str, Any]], None]

#: Attempts that raised and are not recorded yet: so many are remembered.
_PLACES: Final = 1000
#: So many new objects that may be in circles are made before those are looked for.
_YOUNG: Final = 5_000


class Duty(msgspec.Struct, frozen=True):
    """What to serve, and how. `definitions`: graphs, steps and whatever else the apps declare."""

    definitions: Sequence[Any]
    names: Sequence[str]
    store: str
    name: str
    grace: float
    hosts: tuple[str, ...]
    quiet: bool
    #: Where else it is told what happens: one JSON value each.
    events: Event | None = None


async def serve(duty: Duty, screen: Screen) -> None:
    """Work until SIGTERM or SIGINT. Raises Trouble where not all that was done is recorded."""
    secrets = Secrets.from_environment()
    engine = Engine(
        duty.store,
        duty.definitions,
        secrets=secrets,
        http=HttpOptions(allow_hosts=duty.hosts or None),
        grace=duty.grace,
        name=duty.name,
    )
    told = Told(screen, duty.quiet, duty.events)
    engine.observe(told)
    with log_to(screen, secrets.redact, told.raised):
        async with engine:
            told.event("serves", workflows=list(duty.names), store=duty.store)
            told.note(f"serves {', '.join(duty.names)} on {duty.store}; Ctrl-C or SIGTERM ends it")
            _collect_rarely()
            await engine.serve()
            told.note(f"stopping: steps under way have {duty.grace:g} s to end")
        left = engine._shell.unrecorded
        told.event("stopped", unrecorded=left)
        if left is not None:
            raise Trouble(f"stopped, but {unrecorded(left)}", STORE, "store")
        told.note("stopped; what is not done is kept for the next worker")


def _collect_rarely() -> None:
    """What is in memory by now stays for the life of this process, and of hundreds of runs at work
    nearly nothing is garbage in circles: looking for it took a tenth of the loop's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)


class Told:
    """An engine's Observer: which runs came, and how they ended. `quiet`: only failures.
    `events`: hears of all of it as values, whether quiet or not."""

    def __init__(self, screen: Screen, quiet: bool, events: Event | None = None) -> None:
        self._screen = screen
        self._quiet = quiet
        self._events = events
        #: Where attempts raised: (workflow, id, node, attempt) -> place.
        self._places: dict[tuple[str, str, str, int], str] = {}

    def note(self, text: str) -> None:
        """Something about the worker itself."""
        if not self._quiet:
            self._screen.note(text)

    def event(self, what: str, **fields: Any) -> None:
        """The same for programs."""
        if self._events is not None:
            self._events({"time": instant(datetime.now(UTC)), "event": what, **fields})

    def entered(self, live: LiveRun, run: Run) -> None:
        """A run came into memory."""
        reached = any(state.status != "pending" for state in run.nodes.values())
        begins = live.epoch == 0 or (live.epoch == 1 and not reached)  # 1: its first owner
        self.note(f"{_name(live)} {'begins' if begins else 'goes on'}")
        self.event("begins" if begins else "goes-on", **_run(live))

    def recorded(self, live: LiveRun, transition: Decided) -> None:
        """A transition became durable: its run may have ended with it."""
        for action in transition.actions:
            if isinstance(action, FinishRun):
                self._finished(live, action)
            elif isinstance(action, RetryTask | FailTask):
                self._erred(live, action, transition.at)
            elif isinstance(action, CreateTask) and action.status == "waiting":
                self.note(f"{_name(live)} waits at {action.node}{_for(action)}")
                until = None if action.wake_at is None else instant(moment(action.wake_at))
                waits = {"node": action.node, "signal": action.awaited_signal, "until": until}
                self.event("waits", **_run(live), **waits)

    def raised(self, workflow: str, id: str, node: str, attempt: int, place: str) -> bool:
        """An attempt raised at this place in the code; it is told when that is recorded."""
        if len(self._places) >= _PLACES:  # of runs that others have taken over
            self._places.clear()
        self._places[workflow, id, node, attempt] = place
        return True

    def _erred(self, live: LiveRun, action: RetryTask | FailTask, at: int) -> None:
        """An attempt failed. When quiet, only one that raised what nobody declared is told."""
        number = action.attempt + 1
        key = (live.definition.name, live.run_id, action.node, number)
        unforeseen, place = key in self._places, self._places.pop(key, "")
        why = reason(action.failure.kind, action.failure.message)
        text = f"{_name(live)} {action.node}: attempt {number} failed: {why}"
        text += f" ({place})" if place else ""
        if isinstance(action, RetryTask):
            wait = (action.not_before - at) / 1_000_000
            text += f"; attempt {number + 1} in {took(wait)}"
        if unforeseen or not self._quiet:
            self._screen.note(text)

    def _finished(self, live: LiveRun, action: FinishRun) -> None:
        failure = action.failure
        if failure is None:
            self.note(f"{_name(live)} {action.status}")
            self.event("ended", **_run(live), status=action.status, failure=None)
            return
        why = run_reason(failure.kind, failure.message, failure.details)
        self._screen.note(f"{_name(live)} {action.status}: {why}")
        told = {"kind": failure.kind, "message": failure.message, "details": failure.details}
        self.event("ended", **_run(live), status=action.status, failure=told)


def _run(live: LiveRun) -> dict[str, str]:
    return {"workflow": live.definition.name, "id": live.run_id}


def _for(action: Any) -> str:
    signal = f" for signal {action.awaited_signal}" if action.awaited_signal else ""
    until = "" if action.wake_at is None else f" until {moment_near(moment(action.wake_at))}"
    return signal + until


def _name(live: LiveRun) -> str:
    return f"{live.definition.name}/{live.run_id}"
