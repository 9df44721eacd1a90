"""Without a Telemetry of their own, clients and engines follow the process, whenever it decides."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
from perdure import Client, Context, Engine, step, workflow
from perdure.stores.memory import MemoryStore

@step
async def work(): ...

@workflow(max_duration="1h")
async def one(ctx: Context) -> None:
    await work()

async def main():
    async with Engine(MemoryStore(), [one]) as engine:
        await engine.run(one)
        assert not [name for name in sys.modules if name.startswith("opentelemetry")]

        import opentelemetry.trace, opentelemetry.metrics
        await engine.run(one)

        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        spans, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(spans))
        opentelemetry.trace.set_tracer_provider(provider)
        await engine.run(one)
        assert [s.name for s in told(spans)] == NAMES
        start, attempt, _ = told(spans)
        assert attempt.parent.span_id == start.context.span_id

        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        reader = InMemoryMetricReader()
        opentelemetry.metrics.set_meter_provider(MeterProvider([reader]))
        await engine.run(one)
        [resource] = reader.get_metrics_data().resource_metrics
        counter, histogram = resource.scope_metrics[0].metrics
        assert (counter.name, histogram.name) == INSTRUMENTS
        points = [p for p in counter.data.data_points if p.attributes[OPERATION] != "run"]
        assert sum(point.value for point in points) == 3

        async with Client(MemoryStore()) as client:
            await client.start(one)
        assert [s.name for s in told(spans)] == [*NAMES * 2, "start one"]
    assert [s.name for s in spans.get_finished_spans() if s not in told(spans)] == ["run one"] * 2

def told(spans):  # a run is told of beside the rest, soon after its end
    return [s for s in spans.get_finished_spans() if s.name != "run one"]

OPERATION = "perdure.operation"
NAMES = ["start one", "step_attempt work", "result one"]
INSTRUMENTS = ("perdure.operations", "perdure.operation.duration")
asyncio.run(main())
print("all of it held")
"""


@pytest.mark.rule("W-63")
def test_the_process_s_default_is_followed_from_the_moment_it_is_there() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("all of it held\n", "")
