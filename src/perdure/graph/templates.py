"""Compiles every template of a document and checks what each may read (expr.md's rule 4).

A node may read the nodes from which it can be reached, nothing else is certain to have ended
before it; so may the conditions on the edges of a SWITCH. The document's output may read every
node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from perdure.expr import (
    Condition,
    ExprError,
    References,
    Template,
    TemplateErrors,
    compile_condition,
    compile_template,
)
from perdure.expr.template_text import compile_text
from perdure.graph.document import WAITS, Document
from perdure.graph.read import pointer
from perdure.graph.template_hints import hint_for, name_hint
from perdure.graph.waits import stated
from perdure.model.graph import CHILD
from perdure.model.graph_rules import Finding, Ranks
from perdure.model.guesses import did_you_mean

ROOTS: Final = ("input", "config", "tasks", "system", "secrets")


class Reading(msgspec.Struct, frozen=True):
    """One string that holds a template: where it stands, who it works for, what it reads.

    `node`: the node that reads, None for the document's output. `what`: spec, condition or
    output.
    """

    at: str
    node: str | None
    what: str
    text: str
    refs: References

    def problem(
        self,
        message: str,
        at: tuple[int, int] | None = None,
        hint: str = "",
        severity: Literal["error", "warning"] = "error",
    ) -> Finding:
        """A finding about this string; `at`: line and column within it."""
        return Finding(self.at, message, self.node, hint, severity, within=at)


class Templates(msgspec.Struct):
    """All of a document's templates, compiled; those that could not be are left out."""

    specs: dict[str, Template] = {}
    #: By index of the edge.
    conditions: dict[int, Condition] = {}
    output: Template | None = None
    readings: list[Reading] = []


def compile_all(document: Document, findings: list[Finding]) -> Templates:
    """The document's templates; what does not compile goes to `findings`."""
    result = Templates()
    for node in document.nodes:
        spec = {} if node.spec is None else node.spec
        if node.type in WAITS or node.type == CHILD:
            spec = stated(spec)
        at = pointer(node.at, "spec")
        template = _template(spec, at, node.id, "spec", result.readings, findings)
        if template is not None:
            result.specs[node.id] = template
    for edge in document.edges:
        if edge.condition is None:
            continue
        at = pointer(edge.at, "condition")
        condition = _condition(edge.condition, at, edge.source, findings)
        if condition is not None:
            result.conditions[edge.index] = condition
            text, refs = edge.condition, condition.refs
            result.readings.append(Reading(at, edge.source, "condition", text, refs))
    if document.output is not None:
        output = _template(document.output, "/output", None, "output", result.readings, findings)
        result.output = output
    return result


def _template(
    value: Any,
    at: str,
    node: str | None,
    what: str,
    readings: list[Reading],
    findings: list[Finding],
) -> Template | None:
    try:
        template = compile_template(value)
    except TemplateErrors as errors:
        findings += [broken(at + below, error, node) for below, error in errors.problems]
        bad = {below for below, _ in errors.problems}
        # The sound ones are read all the same: one mistake hides no other.
        for below, text in _texts(value):
            if below not in bad:
                _template(text, at + below, node, what, readings, findings)
        return None
    readings += [Reading(at + p.pointer, node, what, p.text, p.refs) for p in template.parts]
    return template


def _texts(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a value with its JSON pointer; keys are not templates."""
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts(member, pointer(at, key))


def _condition(text: str, at: str, source: str, findings: list[Finding]) -> Condition | None:
    try:
        condition = compile_condition(text)
        single = text.startswith("{{") and text.endswith("}}") and text.count("{{") == 1
        if single or compile_text(text).whole is not None:
            return condition
    except ExprError as error:
        findings.append(broken(at, error, source))
        return None
    message = "a condition is one template; with text around it, it is a text and always true"
    findings.append(Finding(at, message, source, 'write "{{ … }}" and nothing else, no space'))
    return None


def broken(at: str, error: ExprError, node: str | None) -> Finding:
    """A template that does not compile, with line and column inside its string."""
    within = (error.line, error.column)
    return Finding(at, error.message, node, hint_for(error), within=within)


def reading_problems(
    readings: Sequence[Reading], types: Mapping[str, str], ranks: Ranks | None
) -> Iterator[Finding]:
    """Reads of what is not there, or not yet. Without ranks (a graph in circles) nothing is said
    about order."""
    for reading in readings:
        yield from _root_problems(reading, types)
        yield from _secret_problems(reading, types)
        reader = reading.node if reading.node in types else None
        for task, at in reading.refs.task_positions.items():
            if task not in types:
                hint = minus_hint(reading, task, types) or did_you_mean(task, list(types))
                yield reading.problem(f'there is no node "{task}" to read', at, hint)
            elif task == reader:
                message = f"tasks.{task} is read before {task} has ended"
                yield reading.problem(message, at, "read what comes before it")
            elif ranks is not None and reader is not None and not ranks.precedes(task, reader):
                message = f"tasks.{task} is read, but {task} does not come before {reader}"
                yield reading.problem(message, at, f"lead edges from {task} to {reader}")


def _root_problems(reading: Reading, types: Mapping[str, str]) -> Iterator[Finding]:
    for root, at in reading.refs.root_positions.items():
        if root not in ROOTS:
            minus = _minus_before(reading, root, types)
            if minus is None:
                hint = name_hint(root) or did_you_mean(root, ROOTS)
                yield reading.problem(f'there is nothing called "{root}"', at, hint)
            elif minus in types:
                hint = minus_hint(reading, minus, types)
                yield reading.problem(f'there is nothing called "{root}"', at, hint)


def constant_problems(reading: Reading) -> Iterator[Finding]:
    """An expression that reads nothing and cannot be evaluated never can be."""
    if not reading.refs.roots:
        try:
            compile_text(reading.text).render({})
        except ExprError as error:
            hint = "it reads nothing, so it fails in each run: read something, or take it out"
            yield reading.problem(error.message, (error.line, error.column), hint)


def _secret_problems(reading: Reading, types: Mapping[str, str]) -> Iterator[Finding]:
    at = reading.refs.root_positions.get("secrets")
    if at is None:
        return
    if reading.what == "output":
        message, hint = "the output is recorded: it may not read secrets", "leave it out"
        yield reading.problem(message, at, hint)
    elif reading.what == "spec" and types.get(reading.node or "") == CHILD:
        message = "what another run is given is recorded: it may not read secrets"
        yield reading.problem(message, at, "read the secret where it is used, in that run")
    elif reading.what == "spec" and types.get(reading.node or "") in WAITS:
        message = "what a node waits for is recorded: it may not read secrets"
        yield reading.problem(message, at, "take it from the input")


_TAIL: Final = re.compile(r"(?:-[A-Za-z0-9_]+)+")


def minus_hint(reading: Reading, task: str, types: Mapping[str, str]) -> str:
    """How to write `tasks.send-welcome`, of which CEL reads `tasks.send` minus `welcome`."""
    for match in re.finditer(rf"\btasks\.{re.escape(task)}(?=-)", reading.text):
        tail = _TAIL.match(reading.text, match.end())
        words = tail[0].split("-")[1:] if tail else []
        for count in range(len(words), 0, -1):
            node = "-".join([task, *words[:count]])
            if node in types:
                return f'CEL reads "-" as minus: write tasks["{node}"]'
    return ""


def _minus_before(reading: Reading, root: str, types: Mapping[str, str]) -> str | None:
    """The `send` of `tasks.send-welcome`, for the `welcome` that CEL takes for a name of its
    own; None when it is not that. (If there is no node `send`, that is told already.)"""
    for match in re.finditer(rf"\btasks\.(\w+)(?:-\w+)*-{re.escape(root)}\b", reading.text):
        if minus_hint(reading, match[1], types):
            return match[1]
    return None
