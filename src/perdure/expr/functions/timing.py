"""The selectors of timestamps and durations: getHours() and its kin, with or without a zone."""

from __future__ import annotations

from typing import Any

from perdure.expr.functions.function import of
from perdure.expr.times import PARTS, part_of

PLAIN: dict[str, Any] = {}
METHODS = {name: of(part_of(name), 1, 2) for name in PARTS}
