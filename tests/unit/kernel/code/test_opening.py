"""A workflow's start without its machine comes to what the machine decides."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from perdure.codec.values import JsonCodec
from perdure.flow.context import Context
from perdure.flow.workflow import workflow
from perdure.kernel.events import RunBegun, RunStarted
from perdure.kernel.protocol import Deps
from perdure.kernel.run import Run
from tests.unit.kernel.code.board import text
from tests.unit.kernel.harness import NEW_YEAR, shown

DEPS = Deps(lambda: NEW_YEAR, lambda: "t1", lambda: 0.5, JsonCodec())


@workflow(max_duration=None)
async def doubled(ctx: Context, n: int) -> int:
    return 2 * n


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"config": text({"a": 1}), "metadata": {"b": "c"}},
        {"deadline": NEW_YEAR + 1, "trace": {"traceparent": "00-a-b-01"}},
    ],
)
def test_both_ways_record_the_same_and_go_on_alike(more: dict[str, Any]) -> None:
    event = RunStarted("r1", input=text(4), python="3.11", **more)
    by_rule = Run()
    machine = doubled.machine(by_rule, DEPS)
    decided = machine.decide(event)
    straight = doubled.straight_start(event, DEPS, NEW_YEAR)
    assert straight is not None
    run, made_with, made = straight
    assert msgspec.json.encode(made) == msgspec.json.encode(decided)
    assert shown(run) == shown(by_rule)
    first = machine.decide(RunBegun())
    assert msgspec.json.encode(made_with.decide(RunBegun())) == msgspec.json.encode(first)
    assert shown(run) == shown(by_rule)
    assert run.status == "completed"


def test_a_start_that_is_refused_is_left_to_the_machine() -> None:
    event = RunStarted("r1", start_node="a", input=text(4))
    assert doubled.straight_start(event, DEPS, NEW_YEAR) is None
