"""Attempts as they are observed: one observation for each time a handler is really called.

Only what a runner executes comes by here; what a run is loaded with or told from its journal never
does. Nothing of the attempt is changed by being seen.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from perdure.engine.handlers.port import StepNotRegistered
from perdure.engine.stepping import Waiting, first_part
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.telemetry.observation import Attempt
from perdure.telemetry.service import OPENTELEMETRY, telemetry_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perdure.engine.dispatcher import Dispatcher, Report
    from perdure.engine.orders import Order
    from perdure.telemetry import Telemetry

__all__ = ["OPENTELEMETRY", "observed"]


def observed(
    given: Telemetry | None, dispatcher: Dispatcher, order: Order, trace: Mapping[str, str] | None
) -> Report | Waiting | None:
    """Begin the attempt as `dispatcher.begin` does, seen by what was given or by the process's
    own telemetry. `trace`: the carrier that its run was started with."""
    telemetry = telemetry_of(given)
    if telemetry is None:
        return dispatcher.begin(order)
    step = order.node if order.step is None else order.step.name
    seen = Attempt(telemetry, order.workflow, step, order.number + 1, trace)
    try:
        made = dispatcher.begin(order, partial(seen.around, first_part))
    except BaseException as error:
        _ended(seen, error)
        raise
    if isinstance(made, Waiting):
        made.seen = partial(_ended, seen)
    else:
        _ended(seen, made)
    return made


def _ended(seen: Attempt, how: Report | BaseException | None) -> None:
    if isinstance(how, NodeFailed):
        seen.ended(how.failure)
    elif isinstance(how, NodeCompleted):
        seen.ended(None)
    elif isinstance(how, StepNotRegistered):
        seen.never()
    elif how is None or isinstance(how, (asyncio.CancelledError, GeneratorExit)):
        seen.given_up()
    else:
        seen.escaped()
