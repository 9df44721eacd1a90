"""Whole validation: every problem of a document, found in one go and told in its order (D-24)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from perdure.graph.document import Document, read_document
from perdure.graph.fields import field_problems
from perdure.graph.input_fields import input_problems
from perdure.graph.lines import SourceText, with_lines
from perdure.graph.read import canonical
from perdure.graph.source import Format, Source, read_source
from perdure.graph.specs import check_spec
from perdure.graph.templates import (
    Templates,
    compile_all,
    constant_problems,
    reading_problems,
)
from perdure.graph.waits import OLDER_TYPES
from perdure.model.errors import GraphError
from perdure.model.graph import Edge, GraphShape
from perdure.model.graph_rules import (
    Finding,
    Ranks,
    cycle_problems,
    edge_problems,
    entry_problems,
    repeated_ids,
)
from perdure.model.guesses import bounded

if TYPE_CHECKING:
    from perdure.graph.inputs.check import InputCheck

_SHOWN = 100


class Checked(msgspec.Struct):
    """A document with all that was found on the way. Without findings it can be planned."""

    value: dict[str, Any]
    document: Document
    shape: GraphShape
    ranks: Ranks | None
    templates: Templates
    findings: list[Finding]
    #: What the document was read from, when that was text.
    text: SourceText | None = None
    #: Whether inputs are what the document's schema of them asks for.
    input: InputCheck | None = None


def check(source: Source, format: Format = "json") -> Checked:
    """Everything wrong with a document, as `findings` sorted by place.

    Raises GraphError when there is nothing to look at: not of its format, not an object, too large.
    """
    with bounded():
        return _check(source, format)


def _check(source: Source, format: Format) -> Checked:
    findings: list[Finding] = []
    value, text = read_source(source, format, findings)
    document = read_document(value, findings)
    inputs = None
    if document.input is not None:
        # Not for every document: it takes a while to import.
        from perdure.graph.inputs.check import input_check

        inputs = input_check(document.input, "/input", findings)
    edges = [
        (e.index, Edge(e.source, e.target, e.condition is not None, e.default))
        for e in document.edges
    ]
    types: dict[str, str] = {}
    for node in document.nodes:
        types.setdefault(node.id, node.type)
        check_spec(node, findings)
    findings += repeated_ids([(node.index, node.id) for node in document.nodes])
    findings += edge_problems(types, edges)
    newer = {node: OLDER_TYPES.get(kind, kind) for node, kind in types.items()}
    shape, ranks = _order(newer, [edge for _, edge in edges], findings)
    if ranks is not None:
        findings += entry_problems(shape, ranks, document.entry)
    if isinstance(value.get("edges"), list) and len(shape.edges) < len(value["edges"]):
        ranks = None  # an edge leads nowhere: what misses it would be told of innocent nodes
    templates = compile_all(document, findings)
    findings += reading_problems(templates.readings, types, ranks)
    for reading in templates.readings:
        findings += constant_problems(reading)
        findings += field_problems(reading, types)
        findings += input_problems(reading, document.input)
    findings = in_order(with_lines(findings, text))
    return Checked(value, document, shape, ranks, templates, findings, text, inputs)


def _order(
    types: dict[str, str], edges: Sequence[Edge], findings: list[Finding]
) -> tuple[GraphShape, Ranks | None]:
    known = [e for e in edges if e.source in types and e.target in types]
    shape = GraphShape(types, known)
    problems = cycle_problems(shape)
    findings += problems
    return shape, None if problems else Ranks(shape)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The findings as a reader comes upon them: by line, and without a text by pointer."""
    return sorted(findings, key=lambda one: (one.line, one.column, _place(one.pointer)))


def _place(pointer: str) -> list[tuple[int, str]]:
    """Sorts pointers as a reader goes through the document: item 2 before item 10."""
    parts = pointer.split("/")
    # A key of an object may be any digits; an index of a list is short and plain.
    indexed = [p.isascii() and p.isdigit() and len(p) < 8 for p in parts]
    return [(int(p), "") if i else (-1, p) for p, i in zip(parts, indexed, strict=True)]


def refuse(name: str, findings: Sequence[Finding], file: str = "") -> GraphError:
    """One error that tells all the problems, with the file they were found in."""
    count = len(findings)
    title = f"graph {name}" if name else "this graph document"
    before = f"{file}: " if file else ""
    lines = [f"{before}{title} has {count} problem{'s' if count > 1 else ''}:"]
    lines += [f"  {finding.shown(file)}" for finding in findings[:_SHOWN]]
    if count > _SHOWN:
        lines.append(f"  … and {count - _SHOWN} more (all are in .problems)")
    return GraphError("\n".join(lines), findings)


def sealed(checked: Checked, file: str = "") -> bytes:
    """The canonical bytes of a document without problems; raises GraphError otherwise."""
    if checked.findings:
        raise refuse(checked.document.name, checked.findings, file)
    return canonical(checked.value)
