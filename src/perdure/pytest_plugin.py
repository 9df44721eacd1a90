"""The pytest plugin: one fixture, `perdure_engine`. Nothing of perdure is imported before a test
asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from perdure.testing.engine import TestEngine


@pytest.fixture
def perdure_engine() -> Iterator[TestEngine]:
    """A TestEngine of this test's own: it opens at its first use, on the test's event loop."""
    from perdure.testing.engine import TestEngine

    engine = TestEngine()
    yield engine
    engine._let_go()
