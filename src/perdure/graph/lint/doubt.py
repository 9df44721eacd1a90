"""How a doubt is told: a Finding that never stops a document."""

from __future__ import annotations

from perdure.graph.check import Checked
from perdure.model.graph_rules import Finding


def warning(pointer: str, node: str | None, message: str, hint: str) -> Finding:
    """A warning about the value at a pointer."""
    return Finding(pointer, message, node, hint, "warning")


def entry_of(checked: Checked) -> str:
    """The node where a run starts; "" where that is not told."""
    entries = checked.shape.entries
    return checked.document.entry or (entries[0] if len(entries) == 1 else "")
