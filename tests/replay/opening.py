"""How golden journals begin."""

from __future__ import annotations

from typing import Any

from perdure.kernel.actions import OpenRun
from perdure.kernel.onward import Decided

AT = 1_700_000_000_000_000

Journal = list[list[Decided]]


def opened(**more: Any) -> OpenRun:
    """The first record of each."""
    return OpenRun("order", "order-1", "3", "9f2c", "3.11", **more)
