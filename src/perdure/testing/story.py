"""The story of a rehearsal: how it went, in words, for people."""

from __future__ import annotations

import json
from typing import Any

from perdure.testing.recorded import NodeRun, Recorded


def ending(rehearsal: Recorded) -> str:
    """The status, and why where it is not the good one."""
    failure = rehearsal.failure
    why = f"{failure['kind']}: {failure['message']}" if failure else rehearsal.reason
    return f"{rehearsal.status} ({why})" if why else rehearsal.status


def clock(seconds: float) -> str:
    """A length of virtual time: 0s, 1.5s, 5m, 3d 02h, 72h 10m 03s."""
    if seconds < 60:
        return f"{round(seconds, 3):g}s"
    whole = round(seconds)
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (whole % 60, "s")]
    return " ".join(f"{amount}{unit}" for amount, unit in parts if amount)


def story(rehearsal: Recorded) -> str:
    """See Rehearsal.story."""
    rows = [_row(run) for run in rehearsal.nodes.values()]
    head = ("AT", "NODE", "STATUS", "ATTEMPT", "WHAT")
    widths = [max(len(row[n]) for row in [head, *rows]) for n in range(len(head))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    ]
    lines.append(f"{ending(rehearsal)} after {clock(rehearsal.seconds)}")
    lines += [f"note: {note}" for note in rehearsal.notes]
    return "\n".join(lines)


def _row(run: NodeRun) -> tuple[str, ...]:
    attempt = str(run.attempt) if run.attempt else "-"
    return f"+{clock(run.began)}", run.node, run.status, attempt, what(run)


def what(run: NodeRun) -> str:
    """What a node came to, on one line."""
    took = "" if run.ended is None or run.ended == run.began else clock(run.ended - run.began)
    if run.failure is not None and run.status != "completed":
        said = _cut(f"{run.failure['kind']}: {run.failure['message']}", 80)
    elif run.branches is not None:
        said = f"chose {', '.join(run.branches) or 'nothing'}"
    elif run.status == "completed":
        said = brief(run.output)
    else:
        said = ""
    return " ".join(filter(None, (said, f"(took {took})" if took else "")))


def brief(value: Any, columns: int = 60) -> str:
    """A JSON value on one line, shortened."""
    return _cut(json.dumps(value, ensure_ascii=False, default=str), columns)


def _cut(text: str, columns: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= columns else line[: columns - 1] + "…"
