"""What a case needs and the examined is said to lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class Declares(Protocol):
    """A bed that says what is lacking, per capability: "" or why."""

    def capabilities(self) -> Any:
        """The gaps."""


def gap_of(bed: Declares, case: Callable[..., Any]) -> tuple[str, str] | None:
    """The first capability that the case needs and that is said to be lacking, and why."""
    lacking = bed.capabilities()
    for capability in getattr(case, "needs", ()):
        if reason := getattr(lacking, capability):
            return capability, reason
    return None
