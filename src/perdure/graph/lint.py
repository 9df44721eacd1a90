"""lint: what is wrong with a document, and what is merely doubtful.

Errors are those that stop `Graph.load`. Warnings are for documents that load and may yet
surprise: they are guesses from the text, and no run ever depends on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from perdure.graph.check import Checked, check, in_order
from perdure.graph.document import WAITS
from perdure.graph.form import templated
from perdure.graph.lines import with_lines
from perdure.graph.templates import Reading
from perdure.graph.waits import is_bounded
from perdure.model.errors import GraphError
from perdure.model.graph_rules import Finding, unreached


def lint(source: str | bytes | Mapping[str, Any], /) -> list[Finding]:
    """All errors and warnings, in the order of the document. Raises nothing for bad documents."""
    try:
        checked = check(source)
    except GraphError as error:
        return [_finding(problem) for problem in error.problems]
    found: list[Finding] = []
    for warn in (_switches, _joins, _waits, _skippable_reads, _computed_reads, _unreached):
        found += warn(checked)
    return in_order([*checked.findings, *with_lines(found, checked.text)])


def _finding(problem: object) -> Finding:
    return problem if isinstance(problem, Finding) else Finding("", str(problem))


def _warning(pointer: str, node: str | None, message: str, hint: str) -> Finding:
    return Finding(pointer, message, node, hint, "warning")


def _switches(checked: Checked) -> Iterator[Finding]:
    """A SWITCH that may choose nothing, or whose edges do not choose at all (D-7)."""
    edges = checked.shape.outgoing
    for node in checked.document.nodes:
        if node.type != "SWITCH":
            continue
        leaving = edges[node.id]
        conditional = [e for e in leaving if e.conditional]
        default = [e for e in leaving if e.default]
        always = len(leaving) - len(conditional) - len(default)
        if not leaving:
            yield _warning(node.at, node.id, "no edge leaves this SWITCH", "take it out")
        elif not conditional:
            message = "no edge of this SWITCH has a condition: all are always taken"
            yield _warning(node.at, node.id, message, "add conditions, or make it a FORK")
        elif not default and not always:
            yield _warning(
                node.at,
                node.id,
                "when no condition holds, everything after this SWITCH is skipped",
                'give one edge "default": true',
            )
        elif default and always:
            yield _warning(
                node.at,
                node.id,
                "edges without a condition are always taken, also beside the default",
                "give them conditions, or say no default",
            )


def _joins(checked: Checked) -> Iterator[Finding]:
    """A JOIN that joins, or a FORK that forks, fewer than two ways."""
    shape = checked.shape
    for node in checked.document.nodes:
        if node.type == "JOIN" and (count := len(shape.incoming[node.id])) < 2:
            ways = "no edge leads" if not count else "one edge leads"
            yield _warning(node.at, node.id, f"{ways} to this JOIN", "take it out, or add edges")
        if node.type == "FORK" and (count := len(shape.outgoing[node.id])) < 2:
            ways = "no edge leaves" if not count else "one edge leaves"
            yield _warning(node.at, node.id, f"{ways} this FORK", "take it out, or add edges")


def _waits(checked: Checked) -> Iterator[Finding]:
    """Waits that may never end, and waits that say two ends."""
    endless = checked.document.max_duration is None
    for node in checked.document.nodes:
        if node.type == "WAIT" and _says_twice(node.spec):
            message = '"until" goes before a duration, which is never looked at'
            yield _warning(f"{node.at}/spec", node.id, message, "take one out")
        elif node.type in WAITS - {"WAIT"} and endless and not is_bounded(node.spec):
            key = "timeout" if node.type == "WAIT_FOR_SIGNAL" else "timeout_seconds"
            hint = f'say "{key}" here, or "max_duration" of the document'
            message = "a run waits here for ever if the signal never comes"
            yield _warning(node.at, node.id, message, hint)


def _says_twice(spec: Any) -> bool:
    if not isinstance(spec, dict) or spec.get("until") is None or templated(spec["until"]):
        return False
    return any(spec.get(key) is not None for key in ("duration", "duration_seconds"))


def _skippable_reads(checked: Checked) -> Iterator[Finding]:
    """Reads of an output that is not there when a SWITCH went another way (D-14)."""
    ranks, types = checked.ranks, checked.shape.types
    if ranks is None:
        return
    certain = ranks.certain()
    entry = _entry(checked)
    for reading in checked.templates.readings:
        reader = entry if reading.node is None else reading.node
        for task in _bare(reading):
            if reader not in certain or task not in types or task == reader:
                continue
            known = reading.node is None or ranks.precedes(task, reader)
            if known and not certain[reader] & ranks.bit[task]:
                yield reading.problem(
                    f"{task} may have been skipped, and then has no output",
                    reading.refs.task_positions.get(task),
                    f"ask with has({_spelled(task)}.output)",
                    "warning",
                )


def _bare(reading: Reading) -> list[str]:
    refs = reading.refs
    outputs = {task for task, field in refs.task_fields if field == "output"}
    return [task for task in refs.task_positions if task in outputs - refs.guarded]


def _spelled(task: str) -> str:
    return f'tasks["{task}"]' if "-" in task else f"tasks.{task}"


def _entry(checked: Checked) -> str:
    entries = checked.shape.entries
    return checked.document.entry or (entries[0] if len(entries) == 1 else "")


def _computed_reads(checked: Checked) -> Iterator[Finding]:
    """Reads that only a run can tell: they cost loading everything."""
    for reading in checked.templates.readings:
        if reading.refs.computed:
            yield reading.problem(
                "which task is read cannot be told from the text, so the outputs of all nodes "
                "are loaded and kept",
                None,
                "name the task: tasks.<id>",
                "warning",
            )


def _unreached(checked: Checked) -> Iterator[Finding]:
    """Nodes that only a start naming another start node reaches."""
    entry = _entry(checked)
    if checked.ranks is None or entry not in checked.shape.types:
        return
    lost = set(unreached(checked.shape, checked.ranks, entry))
    for node in checked.document.nodes:
        if node.id in lost:
            yield _warning(
                node.at,
                node.id,
                f"a run that starts at {entry} never reaches this node",
                "lead an edge to it, or start such runs with start_node",
            )
