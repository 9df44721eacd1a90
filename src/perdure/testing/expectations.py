"""Expectations: what a rehearsal should have come to, and how it differs, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from perdure.model.durations import SECOND, microseconds
from perdure.model.errors import InvalidOptions, InvalidRequest
from perdure.model.guesses import did_you_mean
from perdure.testing.recorded import Recorded
from perdure.testing.story import brief, clock, ending

STATUSES: Final = ("completed", "failed", "canceled", "waiting", "stalled")
#: Differences within an output that are told; of more it is said that there are more.
_SHOWN: Final = 8


def differences(rehearsal: Recorded, expected: Mapping[str, Any]) -> list[str]:
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


def _status(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    if expected not in STATUSES:
        hint = did_you_mean(str(expected), STATUSES)
        raise InvalidRequest(f"expect: status {expected!r} is none; {hint}")
    if rehearsal.status != expected:
        yield f"status: expected {expected}, got {ending(rehearsal)}"


def _route(rehearsal: Recorded, expected: Any) -> Iterator[str]:
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


def _ran(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    for node in _nodes(rehearsal, "ran", expected):
        if node not in rehearsal.route:
            yield f"ran: {node} did not run, it was {_stand(rehearsal, node)}"


def _not_ran(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    for node in _nodes(rehearsal, "not_ran", expected):
        if node in rehearsal.route:
            yield f"not_ran: {node} did run ({_stand(rehearsal, node)})"


def _skipped(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    for node in _nodes(rehearsal, "skipped", expected):
        if node not in rehearsal.skipped:
            yield f"skipped: {node} was not skipped, it was {_stand(rehearsal, node)}"


def _attempts(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    if not isinstance(expected, Mapping):
        raise InvalidRequest('expect: attempts: write {"charge": 2}')
    for node in _nodes(rehearsal, "attempts", list(expected)):
        run = rehearsal.nodes.get(node)
        got = 0 if run is None else run.attempt
        if got != expected[node]:
            yield f"attempts: expected {expected[node]} of {node}, got {got}"


def _output(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    found = list(_unequal("", expected, rehearsal.output))
    for at, wanted, got in found[:_SHOWN]:
        yield f"output{at}: expected {wanted}, got {got}"
    if len(found) > _SHOWN:
        yield f"output: and {len(found) - _SHOWN} more differences"


def _failure(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    got = rehearsal.failure or {}
    if isinstance(expected, str):
        expected = {"message": expected}
    if not isinstance(expected, Mapping) or not expected.keys() <= {"kind", "message"}:
        raise InvalidRequest('expect: failure: write {"kind": …, "message": …} or a text')
    if "kind" in expected and got.get("kind") != expected["kind"]:
        yield f"failure: expected kind {expected['kind']}, got {ending(rehearsal)}"
    if "message" in expected and str(expected["message"]) not in str(got.get("message", "")):
        yield f"failure: expected {expected['message']!r} in it, got {ending(rehearsal)}"


def _duration(rehearsal: Recorded, expected: Any) -> Iterator[str]:
    try:
        wanted = microseconds(expected, "duration") / SECOND
    except InvalidOptions as error:
        raise InvalidRequest(f"expect: {error}") from None
    if abs(wanted - rehearsal.seconds) > 0.001:
        yield f"duration: expected {clock(wanted)}, got {clock(rehearsal.seconds)}"


_CHECKS: Final[Mapping[str, Callable[[Recorded, Any], Iterator[str]]]] = {
    "status": _status, "failure": _failure, "route": _route, "ran": _ran, "skipped": _skipped,
    "not_ran": _not_ran, "attempts": _attempts, "output": _output, "duration": _duration,
}  # fmt: skip


def _nodes(rehearsal: Recorded, key: str, names: Any) -> tuple[str, ...]:
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
                yield below, brief(wanted[key]), "nothing"
            elif key not in wanted:
                yield below, "nothing", brief(got[key])
            else:
                yield from _unequal(below, wanted[key], got[key])
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for index, (one, other) in enumerate(zip(wanted, got, strict=True)):
            yield from _unequal(f"{at}/{index}", one, other)
    elif wanted != got or isinstance(wanted, bool) != isinstance(got, bool):
        yield at, brief(wanted), brief(got)


def _stand(rehearsal: Recorded, node: str) -> str:
    run = rehearsal.nodes.get(node)
    return "never reached" if run is None else run.status
