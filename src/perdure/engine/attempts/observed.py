"""Attempts as they are observed: one observation for each time a handler is really called.

Only what a runner executes comes by here; what a run is loaded with or told from its journal never
does. Nothing of the attempt is changed by being seen.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from perdure.engine.attempts.stepping import Waiting, first_part
from perdure.engine.handlers.port import StepNotRegistered
from perdure.kernel.events import NodeCompleted, NodeFailed
from perdure.telemetry.observation import Attempt
from perdure.telemetry.service import OPENTELEMETRY, telemetry_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from perdure.engine.attempts.dispatcher import Dispatcher
    from perdure.engine.attempts.ends import Report
    from perdure.engine.attempts.orders import Order
    from perdure.engine.attempts.stepping import Ends
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
        made.ends = Seen(made.ends, seen)
    else:
        _ended(seen, made)
    return made


class Seen:
    """Tells who looks on, too, what an attempt comes to that waits."""

    __slots__ = ("_ends", "_seen")

    def __init__(self, ends: Ends, seen: Attempt) -> None:
        self._ends = ends
        self._seen = seen

    def returned(self, attempt: Waiting, value: Any) -> Report | None:
        """See Ends.returned."""
        return self._told(self._ends.returned, attempt, value)

    def raised(self, attempt: Waiting, error: BaseException) -> Report | None:
        """See Ends.raised."""
        return self._told(self._ends.raised, attempt, error)

    def closed(self, attempt: Waiting) -> None:
        """See Ends.closed."""
        self._ends.closed(attempt)
        _ended(self._seen, None)

    def _told(
        self, how: Callable[[Waiting, Any], Report | None], attempt: Waiting, value: Any
    ) -> Report | None:
        try:
            report = how(attempt, value)
        except BaseException as error:
            _ended(self._seen, error)
            raise
        _ended(self._seen, report)
        return report


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
