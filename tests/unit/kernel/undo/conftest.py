"""Runs a test twice where it asks for `saga`: reloading before each event, and staying alive."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kernel.drawing import Member
from tests.unit.kernel.harness import Harness
from tests.unit.kernel.undo.drawing import Saga, drawn_plan


@pytest.fixture(params=["reloaded", "live"])
def saga(request: pytest.FixtureRequest) -> Saga:
    """A Harness around a graph whose nodes can be undone."""

    def make(nodes: list[Member], edges: list[Member], **rest: Any) -> Harness:
        return Harness(drawn_plan(nodes, edges, **rest), live=request.param == "live")

    return make
