"""A collector for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.virtual.collecting import Collector, collecting


@pytest.fixture
def seen() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector
