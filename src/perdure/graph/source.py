"""Where a document comes from: a mapping, or the text of one in JSON or YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from perdure.graph.lines import SourceText, with_lines
from perdure.graph.read import as_text, parse_json, plain
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding

Format = Literal["json", "yaml"]
Source = str | bytes | Mapping[str, Any]

YAML_SUFFIXES: Final = (".yaml", ".yml")


def format_of(name: str, text: bytes = b"") -> Format:
    """The format of a file by its name; that of standard input (`-`) by how the text begins."""
    if name == "-":
        return "json" if text.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[") else "yaml"
    return "yaml" if name.lower().endswith(YAML_SUFFIXES) else "json"


def read_source(
    source: Source, format: Format, findings: list[Finding]
) -> tuple[dict[str, Any], SourceText | None]:
    """The document as plain values, and its text if it was one; what is wrong with single values
    goes to `findings`. Raises GraphError when there is nothing to go on with."""
    if not isinstance(source, str | bytes):
        return plain(source, findings), None
    text = as_text(source)
    if format == "yaml":
        from perdure.graph.yaml_nodes import compose
        from perdure.graph.yaml_values import value_of

        root = compose(text)
        written, value = SourceText(text, root), value_of(root, findings)
    else:
        written = SourceText(text)
        value = parse_json(text)
    try:
        return plain(value, findings), written
    except GraphError as error:
        problems = with_lines(error.problems, written)
        raise GraphError(str(problems[0]), problems) from None
