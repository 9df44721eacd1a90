"""The suites' long cases are marked as such."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if getattr(getattr(item, "function", None), "slow", False):
            item.add_marker("slow")
