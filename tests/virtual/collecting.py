"""Somebody who collects what is observed, in memory.

OpenTelemetry is loaded here and hidden again: all other tests run as a program does that has no use
for it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from perdure.telemetry.service import OPENTELEMETRY, _Default

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from perdure.telemetry import Telemetry


class Collector:
    """Providers of their own, and what came to them."""

    def __init__(self) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        from perdure.telemetry import Telemetry

        resource = Resource({"service.name": "tests"})
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], resource, shutdown_on_exit=False)
        self.telemetry: Telemetry = Telemetry(
            tracer_provider=self.tracers,
            meter_provider=self.meters,
            propagator=TraceContextTextMapPropagator(),
        )
        self.tracer = self.tracers.get_tracer("tests")

    def spans(self, *operations: str) -> Sequence[ReadableSpan]:
        """The spans that ended, in that order; those of these operations only, if any are given."""
        spans = self._exporter.get_finished_spans()
        return [s for s in spans if not operations or _attribute(s, "operation") in operations]

    def told(self, *operations: str) -> list[tuple[str, ...]]:
        """Name, outcome and type of error of spans."""
        return [
            tuple(
                str(part)
                for part in (
                    s.name,
                    _attribute(s, "outcome"),
                    (s.attributes or {}).get("error.type"),
                )
                if part is not None
            )
            for s in self.spans(*operations)
        ]

    def points(self, instrument: str) -> list[Any]:
        """What was counted or measured, one point for each set of labels."""
        data: Any = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == instrument
            for point in metric.data.data_points
        ]

    def counts(self) -> dict[tuple[str, ...], int]:
        """How many operations ended, by the values of their labels."""
        found: Counter[tuple[str, ...]] = Counter()
        for point in self.points("perdure.operations"):
            found[tuple(point.attributes.values())] += point.value
        return dict(found)

    def everything(self) -> str:
        """All that was collected, as text."""
        spans = [span.to_json() for span in self.spans()]
        data = self._reader.get_metrics_data()
        return "\n".join([*spans, data.to_json() if data else ""])


def _attribute(span: ReadableSpan, name: str) -> Any:
    return (span.attributes or {}).get(f"perdure.{name}")


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector, while OpenTelemetry is there."""
    kept = _hidden.get(OPENTELEMETRY)
    if kept is not None:
        sys.modules[OPENTELEMETRY] = kept
    try:
        yield Collector()
    finally:
        _hidden[OPENTELEMETRY] = sys.modules.pop(OPENTELEMETRY)
        _Default.made = None


_hidden: dict[str, Any] = {}
