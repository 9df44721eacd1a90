"""Every test here runs on every store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.store.kit import CASES, Case


@pytest.fixture(params=CASES, ids=lambda kind: kind.name)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Case:
    made: Case = request.param(tmp_path)
    return made
