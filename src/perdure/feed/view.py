"""View."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Of a run that nothing else is said of.
BY_HAND: Final = "start"


def trigger_of(metadata: Mapping[str, str]) -> str:
    """What started a run, as its metadata says it."""
    return metadata.get("trigger") or BY_HAND
