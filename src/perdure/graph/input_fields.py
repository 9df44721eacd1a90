"""What a document's `input` schema says of the fields that its templates read.

Only what is plainly said is used: properties, required, items and references within the schema.
Where a schema says more (alternatives, patterns), nothing is judged below that place. A `default`
fills nothing in.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from perdure.expr.references import Path
from perdure.graph.templates import Reading
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean

Severity: TypeAlias = Literal["error", "warning"]

_MORE: Final = (
    *("allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "propertyNames"),
    *("dependentSchemas", "dependencies", "unevaluatedProperties", "$dynamicRef"),
)
_DEEPEST: Final = 32


def input_problems(reading: Reading, schema: Any) -> Iterator[Finding]:
    """Reads of fields that no input can have: the schema lets in no others."""
    for path in reading.refs.paths:
        if path in reading.refs.bare:
            yield from _of(reading, path, schema, "error")


def input_doubts(reading: Reading, schema: Any) -> Iterator[Finding]:
    """Reads of fields that are not in the schema, and of those that a start may leave out."""
    for path in reading.refs.paths:
        severity: Severity = "warning" if path in reading.refs.bare else "error"
        for finding in _of(reading, path, schema, severity):
            yield reading.problem(
                finding.message, reading.refs.paths[path], finding.hint, "warning"
            )
        if severity == "warning":
            yield from _optional(reading, path, schema)


def _of(reading: Reading, path: Path, schema: Any, severity: Severity) -> Iterator[Finding]:
    if path[0] != "input":
        return
    at = schema
    for place, key in enumerate(path[1:], 1):
        plain = _plain(at, schema)
        if plain is None:
            return
        shown = _spelled(path[:place])
        fields = plain.get("properties")
        if isinstance(key, int) or not isinstance(fields, Mapping):
            at = plain.get("items") if isinstance(key, int) else None
            continue
        if key not in fields:
            closed = plain.get("additionalProperties") is False
            hint = did_you_mean(key, list(fields))
            if closed and severity == "error":
                message = f'{shown} has no "{key}": the input schema has no such field'
                yield reading.problem(message, reading.refs.paths[path], hint)
            elif not closed and severity == "warning" and hint.startswith("did you mean"):
                message = f'"{key}" is not in the input schema of {shown}'
                yield reading.problem(message, reading.refs.paths[path], hint, "warning")
            return
        at = fields[key]


def _optional(reading: Reading, path: Path, schema: Any) -> Iterator[Finding]:
    """A field that a start may leave out, read as if it were always there."""
    if path[0] != "input":
        return
    at = schema
    for place, key in enumerate(path[1:], 1):
        plain = _plain(at, schema)
        fields = None if plain is None else plain.get("properties")
        if plain is None or not isinstance(fields, Mapping) or key not in fields:
            return
        here = path[: place + 1]
        if key not in plain.get("required", ()):
            if here not in reading.refs.asked:
                shown = _spelled(here)
                message = f"{shown} may be left out of the input: then this fails"
                hint = f"make it required in the schema, or ask with has({shown})"
                yield reading.problem(message, reading.refs.paths[path], hint, "warning")
            return
        at = fields[key]


def _plain(schema: Any, whole: Any) -> Mapping[str, Any] | None:
    """The schema with references within the document followed; None: it says more than is used."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping) or any(key in schema for key in _MORE):
            return None
        to = schema.get("$ref")
        if to is None:
            return schema
        if not isinstance(to, str) or not to.startswith("#/"):
            return None
        schema = whole
        for step in to[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return None


def _spelled(path: Path) -> str:
    return "".join(
        f"[{key}]" if isinstance(key, int) else f".{key}" if place else str(key)
        for place, key in enumerate(path)
    )
