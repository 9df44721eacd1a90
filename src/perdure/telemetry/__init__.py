"""Telemetry: spans and metrics of client calls, step attempts and runs, by OpenTelemetry.

    Engine(url, [order], telemetry=Telemetry(tracer_provider=..., meter_provider=...))

Without `telemetry=` the process's own providers are used, from the moment the program loads
OpenTelemetry; until then nothing here is. What is observed carries names of definitions and steps,
and never a value, a signal, metadata, a run's id or the text of an error.
"""

from __future__ import annotations

from perdure.telemetry.service import Telemetry

__all__ = ["Telemetry"]
