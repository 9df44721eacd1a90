"""lint: what is wrong with a document, and what is merely doubtful.

Errors are those that stop `Graph.load`, and calls of steps that cannot work. Warnings are for
documents that load and may yet surprise: they are guesses from the text, and no run ever depends
on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from perdure.graph.calls import Callee, Startable, call_problems, child_problems
from perdure.graph.check import Checked, check, in_order
from perdure.graph.lines import with_lines
from perdure.graph.lint.conditions import doubtful_conditions
from perdure.graph.lint.flow import doubtful_flow
from perdure.graph.lint.http import doubtful_requests
from perdure.graph.lint.inputs import doubtful_inputs
from perdure.graph.lint.reads import doubtful_reads
from perdure.graph.lint.texts import doubtful_texts
from perdure.graph.lint.times import doubtful_times
from perdure.graph.source import Format, Source
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding
from perdure.model.guesses import bounded

_DOUBTS: Final[tuple[Callable[[Checked], Iterable[Finding]], ...]] = (
    *(doubtful_flow, doubtful_times, doubtful_reads, doubtful_inputs),
    *(doubtful_conditions, doubtful_texts, doubtful_requests),
)


def lint(
    source: Source,
    /,
    *,
    format: Format = "json",
    steps: Mapping[str, Callee] | None = None,
    definitions: Mapping[str, Startable] | None = None,
) -> list[Finding]:
    """All errors and warnings, in the order of the document. Raises nothing for bad documents.

    format: that of a text. steps: what TASK nodes may call, by name; None = not known, and calls
    are not looked at. definitions: what CHILD nodes may ask for, likewise; the document itself is
    one of them.
    """
    with bounded():
        return _lint(source, format, steps, definitions)


def _lint(
    source: Source,
    format: Format,
    steps: Mapping[str, Callee] | None,
    definitions: Mapping[str, Startable] | None,
) -> list[Finding]:
    try:
        checked = check(source, format)
    except GraphError as error:
        return [_finding(problem) for problem in error.problems]
    found: list[Finding] = []
    for doubts in _DOUBTS:
        found += doubts(checked)
    if steps is not None:
        found += call_problems(checked.document, steps)
    if definitions is not None:
        itself = {checked.document.name: _Itself()}
        found += child_problems(checked.document, {**itself, **definitions})
    return in_order([*checked.findings, *with_lines(found, checked.text)])


class _Itself:
    """The document that is looked at: what it asks of its own input, the run tells."""

    def check_input(self, input: bytes | None, codec: Any = None) -> None:
        """Nothing is known against it."""


def _finding(problem: object) -> Finding:
    return problem if isinstance(problem, Finding) else Finding("", str(problem))
