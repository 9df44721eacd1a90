"""How a workflow's machine decides on any event: by its handler, within the order that code needs.

Decisions cannot be rolled back, since code ran: so everything that can be refused or has to be
loaded comes before, and code that cannot go on stops the run with nothing recorded (`Stuck`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from perdure.kernel.actions import ResolveWait, Transition
from perdure.kernel.code.codeless import decide_without_code
from perdure.kernel.code.happened import HANDLERS
from perdure.kernel.code.reopening import on_run_retried
from perdure.kernel.code.running import Running
from perdure.kernel.code.turns import DECIDING
from perdure.kernel.events import Event, RunRetried
from perdure.kernel.protocol import Load
from perdure.model.errors import InvalidRequest

_HANDLERS: Final[dict[type, Callable[[Any, Any], Any]]] = {**HANDLERS, RunRetried: on_run_retried}


def decide_generally(machine: Running, event: Event) -> Transition | Load:
    """The decision, or what is to be loaded for it. Raises Stuck, InvalidRequest, RunFinished,
    RunActive."""
    handler = decide_without_code if machine.given_up else _HANDLERS.get(type(event))
    if handler is None:
        raise InvalidRequest(f"unknown event {type(event).__name__}")
    calls, run = machine.calls, machine.run
    if run.signals and not machine.given_up:
        apart = [kept.id for kept in run.signals if kept.payload is None]
        apart = [id for id in apart if id not in calls.payloads]
        if apart:
            return Load(signals=tuple(apart))
    if calls.stuck is not None and not machine.given_up:
        raise calls.stuck
    machine.now = now = max(machine.deps.now(), run.at)
    actions: list[Any] = []
    calls.actions = actions
    before, run.at = run.at, now
    calls.loop.turn = DECIDING
    try:
        ignored = handler(machine, event)
    except BaseException:
        run.at = before
        raise
    finally:
        machine.calls.at_rest()  # others, where the code began anew
    if ignored is not None:
        run.at = before
        return ignored if type(ignored) is Load else Transition(now, [], ignored)
    run.crashes = 0
    return Transition(now, actions, None, isinstance(actions[0], ResolveWait))
