"""Telemetry: where observations go, and whether anybody wants them.

OpenTelemetry is never loaded for its own sake: a process that has not loaded it has nothing that
could collect a span. So a program without it pays for one look into a dictionary.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, Final

from perdure.model.errors import InvalidOptions

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import TracerProvider

    from perdure.telemetry.instruments import Instruments

#: In sys.modules as soon as the process has any use for OpenTelemetry.
OPENTELEMETRY: Final = "opentelemetry.context"

_log = logging.getLogger("perdure.telemetry")


class Telemetry:
    """Where spans and metrics go, for `Client(telemetry=)` and `Engine(telemetry=)`.

    tracer_provider, meter_provider: OpenTelemetry's; one that is left out is the process's own,
    also if that is set later. propagator: what writes and reads trace carriers, the process's own
    unless given. Raises InvalidOptions where OpenTelemetry is not installed. What a provider raises
    is logged once and hurts nothing.
    """

    __slots__ = ("_said", "instruments")

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        propagator: TextMapPropagator | None = None,
    ) -> None:
        try:
            from perdure.telemetry.instruments import Instruments
        except ImportError as error:
            raise InvalidOptions(
                "telemetry needs the extra [otel]: pip install 'perdure[otel]'"
            ) from error
        self.instruments: Instruments = Instruments(tracer_provider, meter_provider, propagator)
        self._said = False

    def failed(self) -> None:
        """Something raised what is being handled now; the work goes on without being observed."""
        if not self._said:
            self._said = True
            _log.warning("telemetry failed; this is said once", exc_info=True)


class _Default:
    """The process's own, made when it is first of use; `unfit`: it cannot be made here."""

    made: Telemetry | None = None
    unfit: bool = False


def checked_telemetry(given: object) -> Telemetry | None:
    """What was given, if it can be. Raises InvalidOptions."""
    if given is None or isinstance(given, Telemetry):
        return given
    raise InvalidOptions(
        f"telemetry= takes a perdure.telemetry.Telemetry and not {type(given).__name__}: give "
        "Telemetry(tracer_provider=…, meter_provider=…)"
    )


def telemetry_of(given: Telemetry | None) -> Telemetry | None:
    """What was given, or the process's own; None where nothing collects anything."""
    chosen = _default() if given is None else given
    return None if chosen is None or chosen.instruments.idle else chosen


def _default() -> Telemetry | None:
    if _Default.made is None and OPENTELEMETRY in sys.modules and not _Default.unfit:
        try:
            _Default.made = Telemetry()
        except Exception:
            _Default.unfit = True
            _log.warning("this OpenTelemetry cannot be used: nothing is observed", exc_info=True)
    return _Default.made
