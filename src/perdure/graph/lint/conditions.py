"""Doubts about conditions: those that are always the same, and those that ask nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from perdure.expr import ExprError, compile_condition
from perdure.expr.trees import form_of, trees_of
from perdure.graph.check import Checked
from perdure.graph.document import EdgeEntry
from perdure.graph.lint.doubt import warning
from perdure.graph.templates import Reading
from perdure.model.graph_rules import Finding

_FORMS: Final = {
    "number": ("a number: 0 counts as no, anything else as yes", "compare it, as in … > 0"),
    "text": ('a text: "" counts as no, anything else (also "false") as yes', 'compare it: … == ""'),
    "list": ("a list, which always counts as yes", "ask for its size, as in size(…) > 0"),
    "map": ("an object, which always counts as yes", "ask for one of its fields"),
    "null": ("null, which always counts as no", "compare something"),
}
#: Their output is always an object.
_OBJECTS: Final = ("HTTP", "WAIT", "FORK", "JOIN")


def doubtful_conditions(checked: Checked) -> Iterator[Finding]:
    """All doubts about conditions."""
    readings = {r.at: r for r in checked.templates.readings if r.what == "condition"}
    for edge in checked.document.edges:
        reading = readings.get(f"{edge.at}/condition")
        if reading is not None:
            yield from _condition(edge, reading, checked)


def _condition(edge: EdgeEntry, reading: Reading, checked: Checked) -> Iterator[Finding]:
    if not reading.refs.roots:
        yield from _constant(edge, reading)
        return
    trees = trees_of(reading.text)
    form = form_of(trees[0]) if len(trees) == 1 else ""
    if form in _FORMS:
        message, hint = _FORMS[form]
        yield warning(reading.at, edge.source, f"this condition is {message}", hint)
        return
    whole = [path for path in reading.refs.paths if _is_whole_text(reading.text, path)]
    for path in whole:
        kind = checked.shape.types.get(str(path[1])) if len(path) == 3 else None
        if path[0] == "tasks" and path[-1] == "output" and kind in _OBJECTS:
            message = f"the output of {path[1]} ({kind}) is an object, which always counts as yes"
            yield warning(reading.at, edge.source, message, "ask for one of its fields")


def _is_whole_text(text: str, path: tuple[str | int, ...]) -> bool:
    return text[2:-2].strip() == ".".join(map(str, path))


def _constant(edge: EdgeEntry, reading: Reading) -> Iterator[Finding]:
    try:
        value = compile_condition(reading.text).evaluate({})
    except ExprError:
        return  # an error, told as one
    always = "always true: this edge is always taken" if value else "never true"
    hint = "take the condition out" if value else "take the edge out"
    message = f"this condition reads nothing and is {always}"
    yield warning(reading.at, edge.source, message, f"{hint}, or read input or tasks")
