"""Whether the TASK nodes of a document call their steps as these can be called, and whether its
CHILD nodes ask for runs that can be.

Told from the text alone: a value that holds a template is a run's own affair, its name is not.
Steps and definitions come from whoever has them; a document by itself knows none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import UNSET

from perdure.expr import ExprError
from perdure.expr.template_text import compile_text
from perdure.graph.document import Document, NodeEntry
from perdure.graph.form import templated
from perdure.graph.read import pointer
from perdure.model.errors import InvalidRequest
from perdure.model.graph import CHILD
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean
from perdure.model.names import is_name
from perdure.model.unknown import UNKNOWN, UNKNOWN_TEXT


class Callee(Protocol):
    """What is asked of a step: what is wrong with an input, as far as it is known."""

    def misfits(self, input: Any, /) -> Sequence[tuple[Sequence[str | int], str, str]]:
        """For each problem the place below the input, what is wrong, and what to do. UNKNOWN and
        UNKNOWN_TEXT stand for what only a run can tell; UNSET is a call without input."""
        ...


def call_problems(document: Document, steps: Mapping[str, Callee]) -> Iterator[Finding]:
    """Calls of steps that are not there, or that their steps would refuse."""
    for node in document.nodes:
        if node.type == "TASK" and isinstance(node.spec, dict):
            yield from _call(node, node.spec, steps)


def _call(node: NodeEntry, spec: dict[str, Any], steps: Mapping[str, Callee]) -> Iterator[Finding]:
    name, at = spec.get("step"), f"{node.at}/spec"
    if not isinstance(name, str) or templated(name):
        return
    step = steps.get(name)
    if step is None:
        if not is_name(name):
            return  # which is told of the document itself
        hint = did_you_mean(name, list(steps)) or "list it, with --app or beside the graph"
        yield Finding(f"{at}/step", f'there is no step "{name}"', node.id, hint)
        return
    given = _known(spec["input"]) if "input" in spec else UNSET
    for path, message, hint in step.misfits(given):
        place = f"{at}/input" if "input" in spec else at
        for key in path:
            place = pointer(place, key)
        yield Finding(place, message, node.id, hint)


class Startable(Protocol):
    """What is asked of a definition: whether a run of it can begin with an input."""

    def check_input(self, input: bytes | None, codec: Any = None) -> None:
        """Raise InvalidRequest when no run can begin with this, as JSON; None = none is given."""


def child_problems(document: Document, definitions: Mapping[str, Startable]) -> Iterator[Finding]:
    """Runs that are asked for and cannot begin; doubts about names that are not known here, since
    a document may be published, and about runs that an id names and no input begins, since they
    may be there."""
    for node in document.nodes:
        if node.type == CHILD and isinstance(node.spec, dict):
            yield from _child(node, node.spec, definitions)


def _child(
    node: NodeEntry, spec: dict[str, Any], definitions: Mapping[str, Startable]
) -> Iterator[Finding]:
    name, at = spec.get("workflow"), f"{node.at}/spec"
    if not isinstance(name, str) or not is_name(name):
        return  # told of the document itself, or known only when a run reaches the node
    definition = definitions.get(name)
    if definition is None:
        message = f'no workflow or graph "{name}" is known here'
        hint = did_you_mean(name, list(definitions))
        if not hint.startswith("did you mean"):
            hint = "list it with --app, or publish it"
        yield Finding(f"{at}/workflow", message, node.id, hint, "warning")
        return
    input = spec.get("input")
    if _holds_template(input):
        return
    try:
        definition.check_input(None if input is None else msgspec.json.encode(input))
    except InvalidRequest as error:
        hint = f"give what {name} asks for"
        if input is not None:
            yield Finding(f"{at}/input", str(error), node.id, hint)
        elif spec.get("id") is None:
            yield Finding(at, str(error), node.id, hint)
        else:
            hint += ", unless the run is always there already"
            yield Finding(at, str(error), node.id, hint, "warning")


def _holds_template(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_template, value.values()))
    if isinstance(value, list):
        return any(map(_holds_template, value))
    return templated(value)


def _known(value: Any) -> Any:
    """The value as a run passes it on, with UNKNOWN for what it fills in."""
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_known(item) for item in value]
    if not templated(value):
        return value
    try:
        text = compile_text(value)
    except ExprError:
        return UNKNOWN  # told as an error of its own
    if not text.programs:
        return text.literal()
    # With text around it a template is a text, whatever it holds.
    return UNKNOWN if text.whole is not None else UNKNOWN_TEXT
