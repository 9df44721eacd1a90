"""What is wrong or doubtful in a file, for the commands that say so: lint and publish."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from perdure.flow.registry import Registry
    from perdure.model.graph_rules import Finding


def findings_in(file: str, known: Registry | None) -> list[Finding]:
    """All that is wrong or doubtful in a file, or in standard input (`-`). `known`: what it may
    call."""
    from perdure.graph.lint import lint as findings_of
    from perdure.graph.read import MAX_BYTES
    from perdure.graph.source import format_of
    from perdure.model.graph_rules import Finding

    try:
        if file == "-":
            text = sys.stdin.buffer.read(MAX_BYTES + 1)
        else:
            with Path(file).open("rb") as source:
                text = source.read(MAX_BYTES + 1)
    except OSError as error:
        return [Finding("", f"the file cannot be read: {error.strerror}")]
    steps, definitions = (None, None) if known is None else (known.steps, known.definitions)
    return findings_of(text, format=format_of(file, text), steps=steps, definitions=definitions)
