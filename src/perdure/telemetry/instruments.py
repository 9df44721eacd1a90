"""Instruments: the one place that speaks OpenTelemetry. Loaded when there is something to observe.

They are asked for once: what the process has not set yet is a stand-in of OpenTelemetry's own, and
gives real spans from the moment it is set.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from opentelemetry import context, metrics, propagate, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import Span, SpanKind, StatusCode, TracerProvider

from perdure.model.moments import since_epoch

#: The scope of everything that is observed here.
SCOPE: Final = "perdure"
#: Where a duration is counted, in seconds: from a call in memory to a wait for a person.
BOUNDARIES: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 3600.0)

_NOWHERE: Final = Context()
_METRICS: Final = sys.modules.get("opentelemetry.metrics._internal", metrics)
_KINDS: Final = {"start": SpanKind.PRODUCER, "step_attempt": SpanKind.CONSUMER}


class Instruments:
    """A tracer, a counter, a histogram and a propagator. Whatever is called may raise what a
    provider raises."""

    __slots__ = ("_follows", "_operations", "_propagator", "_seconds", "_tracer")

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        propagator: TextMapPropagator | None,
    ) -> None:
        this = _version()
        self._follows = tracer_provider is None and meter_provider is None
        self._propagator = propagator
        self._tracer = trace.get_tracer(SCOPE, this, tracer_provider)
        meter = metrics.get_meter(SCOPE, this, meter_provider)
        self._operations = meter.create_counter(
            "perdure.operations", "{operation}", "Client calls and step attempts that ended"
        )
        self._seconds = meter.create_histogram(
            "perdure.operation.duration",
            "s",
            "How long client calls and step attempts took",
            explicit_bucket_boundaries_advisory=BOUNDARIES,
        )

    @property
    def idle(self) -> bool:
        """Whether nothing would collect anything: the process has set no provider so far.

        Asked for each attempt of a program that has OpenTelemetry and does not use it. The public
        way to ask looks into the environment each time, and costs a tenth of a step; where what is
        read here is gone, nothing is idle.
        """
        return (
            self._follows
            and vars(trace).get("_TRACER_PROVIDER", self) is None
            and vars(_METRICS).get("_METER_PROVIDER", self) is None
        )

    def of_current(self, carrier: Mapping[str, str] | None) -> Context:
        """The context that the caller is in, with a carrier laid over it."""
        now = context.get_current()
        return self._extracted(carrier, now) if carrier else now

    def of_carrier(self, carrier: Mapping[str, str] | None) -> Context:
        """The context of a carrier, and nothing of where it is read."""
        return self._extracted(carrier, _NOWHERE) if carrier else _NOWHERE

    def carrier(
        self, span: Span, over: Mapping[str, str] | None, within: Context
    ) -> dict[str, str]:
        """What belongs to the span, as a carrier, over what was there."""
        made = dict(over or {})
        propagator = self._propagator or propagate.get_global_textmap()
        propagator.inject(made, trace.set_span_in_context(span, within))
        return made

    def begin(
        self, operation: str, name: str, within: Context, attributes: Mapping[str, str | int]
    ) -> Span:
        """A span, begun."""
        kind = _KINDS.get(operation, SpanKind.CLIENT)
        return self._tracer.start_span(name, within, kind, attributes)

    def enter(self, span: Span, within: Context) -> None:
        """Make the span the current one of the calling context, for good: it is left, not ended."""
        context.attach(trace.set_span_in_context(span, within))

    def end(self, span: Span, seconds: float, labels: Mapping[str, str], *, failed: bool) -> None:
        """The span's end, and one more in count and durations."""
        span.set_attributes(labels)
        if failed:
            span.set_status(StatusCode.ERROR)
        span.end()
        self._operations.add(1, labels)
        self._seconds.record(seconds, labels)

    def whole(
        self, name: str, carrier: Mapping[str, str] | None, attributes: Mapping[str, str],
        labels: Mapping[str, str], began: datetime, ended: datetime, *, failed: bool,
    ) -> None:  # fmt: skip
        """A span that is over already, of the trace of a carrier, and one more in count and
        durations."""
        span = self._tracer.start_span(
            name, self.of_carrier(carrier), SpanKind.INTERNAL, attributes,
            start_time=_nanoseconds(began),
        )  # fmt: skip
        if failed:
            span.set_status(StatusCode.ERROR)
        span.end(_nanoseconds(ended))
        self._operations.add(1, labels)
        self._seconds.record((ended - began).total_seconds(), labels)

    def _extracted(self, carrier: Mapping[str, str], within: Context) -> Context:
        propagator = self._propagator or propagate.get_global_textmap()
        return propagator.extract(carrier, within)


def _nanoseconds(time: datetime) -> int:
    return since_epoch(time) * 1000


def _version() -> str:
    try:
        return version("perdure")
    except PackageNotFoundError:  # run from a folder, never installed
        return ""
