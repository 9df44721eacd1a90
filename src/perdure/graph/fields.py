"""Fields that templates read of what the engine itself gives: `system`, a task, a node's output.

What these hold is known from the document alone, so a misspelt one is found when it is loaded and
not when a run has come as far.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from perdure.expr.references import Path, Position
from perdure.graph.templates import Reading
from perdure.model.graph_rules import Finding
from perdure.model.guesses import did_you_mean

SYSTEM_FIELDS: Final = ("now", "run_id", "workflow", "version")
TASK_FIELDS: Final = ("output", "status", "error")
#: What nodes of a type give, where that is always the same.
OUTPUT_FIELDS: Final = {
    "HTTP": ("status", "headers", "body"),
    "WAIT": ("woke_at",),
    "FORK": (),
    "JOIN": (),
}


def field_problems(reading: Reading, types: Mapping[str, str]) -> Iterator[Finding]:
    """Fields that will never be there."""
    told: set[Path] = set()
    for path, at in reading.refs.paths.items():
        for problem, key in _problems(reading, path, at, types):
            if key not in told:
                told.add(key)
                yield problem


def _problems(
    reading: Reading, path: Path, at: Position, types: Mapping[str, str]
) -> Iterator[tuple[Finding, Path]]:
    root, *keys = path
    if root == "system" and keys and keys[0] not in SYSTEM_FIELDS:
        message = f'system has no "{keys[0]}"'
        yield reading.problem(message, at, _meant(keys[0], SYSTEM_FIELDS)), path[:2]
    if root != "tasks" or len(keys) < 2 or keys[0] not in types:
        return
    node, field = str(keys[0]), keys[1]
    shown = spelled(node)
    if field not in TASK_FIELDS:
        hint = _meant(field, TASK_FIELDS)
        if not hint.startswith("did you mean"):
            hint = f"what {node} gave is {shown}.output.{field}"
        yield reading.problem(f'{shown} has no "{field}"', at, hint), path[:3]
    known = OUTPUT_FIELDS.get(types[node])
    if field == "output" and len(keys) > 2 and known is not None and keys[2] not in known:
        kind = types[node]
        message = f'the output of {node} ({kind}) has no "{keys[2]}"'
        yield reading.problem(message, at, _of_output(kind, shown, keys[2], known)), path[:4]


def _of_output(kind: str, shown: str, field: str | int, known: tuple[str, ...]) -> str:
    hint = _meant(field, known)
    if kind == "HTTP" and not hint.startswith("did you mean"):
        return f"fields of the answer are read as {shown}.output.body.{field}"
    return hint or f"the output of a {kind} is empty"


def _meant(field: str | int, known: tuple[str, ...]) -> str:
    return did_you_mean(str(field), known)


def spelled(task: str) -> str:
    """How a template reads a task: an id with a hyphen needs brackets."""
    return f'tasks["{task}"]' if "-" in task else f"tasks.{task}"
