"""Why a node or a run failed, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.cli.say import visible


def reason(kind: str, message: str) -> str:
    """A failure in words: its kind, where the message does not begin with it, and message."""
    kind, text = visible(kind), visible(message.strip() or kind)
    return text if text.startswith((kind, f"the {kind}")) else f"{kind}: {text}"


def run_reason(kind: str, message: str, details: Any) -> str:
    """A run's failure in words. Of one whose nodes failed: the first of them and its reason, and
    how many more there are."""
    node = details.get("node") if isinstance(details, Mapping) else None
    count = details.get("failed") if isinstance(details, Mapping) else None
    start = f"node {node} failed: "
    if not (isinstance(count, int) and message.startswith(start)):
        return reason(kind, message)
    more = f" (and {count - 1} more failed)" if count > 1 else ""
    rest = message.removeprefix(start).removesuffix(more)
    return f"node {node} failed: {reason(kind, rest)}{more}"
