"""Runs a test twice where it asks for `draw`: reloading before each event, and staying alive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.kernel.drawing import Member
from tests.unit.kernel.harness import Harness, plan_of

Draw = Callable[..., Harness]


@pytest.fixture(params=["reloaded", "live"])
def draw(request: pytest.FixtureRequest) -> Draw:
    """A Harness around a graph of nodes and edges."""

    def make(nodes: list[Member], edges: list[Member], **rest: Any) -> Harness:
        policies = rest.pop("policies", {})
        plan = plan_of(nodes, edges, **rest)
        return Harness(plan, live=request.param == "live", policies=policies)

    return make
