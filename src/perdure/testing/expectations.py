"""Expectations: what a rehearsal should have come to, and how it differs, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import InvalidOptions, InvalidRequest
from perdure.model.guesses import did_you_mean

if TYPE_CHECKING:
    from perdure.testing.rehearsal import NodeRun, Rehearsal

STATUSES: Final = ("completed", "failed", "canceled", "waiting", "stalled")
#: Differences within an output that are told; of more it is said that there are more.
_SHOWN: Final = 8


def differences(rehearsal: Rehearsal, expected: Mapping[str, Any]) -> list[str]:
    """See Rehearsal.differences."""
    for key in expected:
        if key not in _CHECKS:
            hint = did_you_mean(str(key), list(_CHECKS))
            raise InvalidRequest(f"expect: unknown key {key!r}; {hint}")
    return [
        line
        for key, check in _CHECKS.items()
        if key in expected
        for line in check(rehearsal, expected[key])
    ]


def _status(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    if expected not in STATUSES:
        hint = did_you_mean(str(expected), STATUSES)
        raise InvalidRequest(f"expect: status {expected!r} is none; {hint}")
    if rehearsal.status != expected:
        yield f"status: expected {expected}, got {ending(rehearsal)}"


def _route(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    wanted, got = _nodes(rehearsal, "route", expected), rehearsal.route
    if wanted == got:
        return
    at = next(
        (n for n, (a, b) in enumerate(zip(wanted, got, strict=False)) if a != b),
        min(len(wanted), len(got)),
    )
    yield f"route: expected {_way(wanted, at)}"
    yield f"            got {_way(got, at)}"


def _way(nodes: Sequence[str], at: int) -> str:
    """The route, with what is different from there on in brackets."""
    marked = [f"[{node}]" if n == at else node for n, node in enumerate(nodes)]
    return " → ".join(marked if at < len(nodes) else [*marked, "[end]"])


def _ran(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    for node in _nodes(rehearsal, "ran", expected):
        if node not in rehearsal.route:
            yield f"ran: {node} did not run, it was {_stand(rehearsal, node)}"


def _not_ran(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    for node in _nodes(rehearsal, "not_ran", expected):
        if node in rehearsal.route:
            yield f"not_ran: {node} did run ({_stand(rehearsal, node)})"


def _skipped(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    for node in _nodes(rehearsal, "skipped", expected):
        if node not in rehearsal.skipped:
            yield f"skipped: {node} was not skipped, it was {_stand(rehearsal, node)}"


def _attempts(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    if not isinstance(expected, Mapping):
        raise InvalidRequest('expect: attempts: write {"charge": 2}')
    for node in _nodes(rehearsal, "attempts", list(expected)):
        run = rehearsal.nodes.get(node)
        got = 0 if run is None else run.attempt
        if got != expected[node]:
            yield f"attempts: expected {expected[node]} of {node}, got {got}"


def _output(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    found = list(_unequal("", expected, rehearsal.output))
    for at, wanted, got in found[:_SHOWN]:
        yield f"output{at}: expected {wanted}, got {got}"
    if len(found) > _SHOWN:
        yield f"output: and {len(found) - _SHOWN} more differences"


def _failure(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    got = rehearsal.failure or {}
    if isinstance(expected, str):
        expected = {"message": expected}
    if not isinstance(expected, Mapping) or not expected.keys() <= {"kind", "message"}:
        raise InvalidRequest('expect: failure: write {"kind": …, "message": …} or a text')
    if "kind" in expected and got.get("kind") != expected["kind"]:
        yield f"failure: expected kind {expected['kind']}, got {ending(rehearsal)}"
    if "message" in expected and str(expected["message"]) not in str(got.get("message", "")):
        yield f"failure: expected {expected['message']!r} in it, got {ending(rehearsal)}"


def _duration(rehearsal: Rehearsal, expected: Any) -> Iterator[str]:
    try:
        wanted = microseconds(expected, "duration") / SECOND
    except InvalidOptions as error:
        raise InvalidRequest(f"expect: {error}") from None
    if abs(wanted - rehearsal.seconds) > 0.001:
        yield f"duration: expected {clock(wanted)}, got {clock(rehearsal.seconds)}"


_CHECKS: Final[Mapping[str, Callable[[Rehearsal, Any], Iterator[str]]]] = {
    "status": _status, "failure": _failure, "route": _route, "ran": _ran, "skipped": _skipped,
    "not_ran": _not_ran, "attempts": _attempts, "output": _output, "duration": _duration,
}  # fmt: skip


def _nodes(rehearsal: Rehearsal, key: str, names: Any) -> tuple[str, ...]:
    if not isinstance(names, list | tuple | set | frozenset):
        raise InvalidRequest(f"expect: {key} must be a list of node ids, not {names!r}")
    known = list(rehearsal.graph.plan.nodes)
    for name in names:
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise InvalidRequest(f"expect: {key}: there is no node {name!r}; {hint}")
    return tuple(names)


def _unequal(at: str, wanted: Any, got: Any) -> Iterator[tuple[str, str, str]]:
    """The places where two JSON values differ: pointer, expected, got."""
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        for key in [*wanted, *(key for key in got if key not in wanted)]:
            below = f"{at}/{key}"
            if key not in got:
                yield below, _brief(wanted[key]), "nothing"
            elif key not in wanted:
                yield below, "nothing", _brief(got[key])
            else:
                yield from _unequal(below, wanted[key], got[key])
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for index, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from _unequal(f"{at}/{index}", one, other)
    elif wanted != got or isinstance(wanted, bool) != isinstance(got, bool):
        yield at, _brief(wanted), _brief(got)


def _brief(value: Any, columns: int = 60) -> str:
    return _cut(json.dumps(value, ensure_ascii=False, default=str), columns)


def _cut(text: str, columns: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= columns else line[: columns - 1] + "…"


def _stand(rehearsal: Rehearsal, node: str) -> str:
    run = rehearsal.nodes.get(node)
    return "never reached" if run is None else run.status


def ending(rehearsal: Rehearsal) -> str:
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


def story(rehearsal: Rehearsal) -> str:
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
        said = _brief(run.output)
    else:
        said = ""
    return " ".join(filter(None, (said, f"(took {took})" if took else "")))
