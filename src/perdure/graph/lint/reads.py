"""Doubts about what templates read: outputs that may not be there, and reads nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from perdure.expr.trees import Comparison, comparisons
from perdure.graph.check import Checked
from perdure.graph.fields import spelled
from perdure.graph.lint.doubt import entry_of
from perdure.graph.templates import Reading
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean

STATUSES: Final = ("completed", "skipped", "failed", "canceled")
#: What other systems call these.
_ELSEWHERE: Final = {
    **dict.fromkeys(("success", "succeeded", "successful", "ok", "done", "finished"), "completed"),
    **dict.fromkeys(("error", "errored", "failure"), "failed"),
    **dict.fromkeys(("omitted", "ignored"), "skipped"),
}


def doubtful_reads(checked: Checked) -> Iterator[Finding]:
    """All doubts about reads of tasks and secrets."""
    yield from _skippable(checked)
    for reading in checked.templates.readings:
        if reading.refs.computed:
            yield reading.problem(
                "which task is read cannot be told from the text, so the outputs of all nodes "
                "are loaded and kept",
                None,
                "name the task: tasks.<id>",
                "warning",
            )
        if "secrets" in reading.refs.roots and not reading.refs.secrets:
            message = "which secret is read cannot be told from the text"
            yield reading.problem(message, None, "name it: secrets.<name>", "warning")
        yield from _statuses(reading)


def _skippable(checked: Checked) -> Iterator[Finding]:
    """Reads of an output that is not there when a SWITCH went another way (D-14)."""
    ranks, types = checked.ranks, checked.shape.types
    if ranks is None:
        return
    certain = ranks.certain()
    entry = entry_of(checked)
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
                    f"ask with has({spelled(task)}.output)",
                    "warning",
                )


def _bare(reading: Reading) -> list[str]:
    refs = reading.refs
    outputs = {task for task, field in refs.task_fields if field == "output"}
    return [task for task in refs.task_positions if task in outputs - refs.guarded]


def _statuses(reading: Reading) -> Iterator[Finding]:
    """A status compared with what it never is."""
    if not any(field == "status" for _, field in reading.refs.task_fields):
        return
    for one in comparisons(reading.text):
        if len(one.path) == 3 and one.path[0] == "tasks" and one.path[2] == "status":
            yield from _status(reading, one)


def _status(reading: Reading, one: Comparison) -> Iterator[Finding]:
    shown = f"{spelled(str(one.path[1]))}.status"
    if one.word not in STATUSES:
        message = f'{shown} is never "{one.word}"'
        near = _ELSEWHERE.get(one.word.lower(), one.word.lower())
        hint = did_you_mean(near, STATUSES)
        yield reading.problem(message, one.at, hint, "warning")
    elif one.word in ("failed", "canceled"):
        message = (
            f'{shown} is never "{one.word}" here: nothing after a node that {_became(one.word)} '
            "is run, and no output is made of such a run"
        )
        hint = "let the step give what went wrong as its output, and ask for that"
        yield reading.problem(message, one.at, hint, "warning")


def _became(status: str) -> str:
    return "failed" if status == "failed" else "was canceled"
