"""Doubts about fields of the input, where the document says what an input holds."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.graph.check import Checked
from perdure.graph.input_fields import input_doubts
from perdure.model.graph_rules import Finding


def doubtful_inputs(checked: Checked) -> Iterator[Finding]:
    """All doubts about reads of `input`."""
    schema = checked.document.input
    if isinstance(schema, dict):
        for reading in checked.templates.readings:
            yield from input_doubts(reading, schema)
