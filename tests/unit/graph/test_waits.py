"""Waiting nodes in documents: what their specs may hold, and the older spelling of one."""

from __future__ import annotations

from typing import Any

import pytest

from perdure.graph import Graph
from perdure.graph.document import WAITS
from perdure.model.graph import NODE_TYPES
from tests.unit.graph.documents import problems, warnings

WAIT: list[tuple[Any, str | None, str]] = [
    (None, None, 'a WAIT needs one; write "spec": {"duration": "24h"}'),
    ([], "", "this is a list, not an object"),
    ({}, "", 'nothing says how long it waits; write "duration": "24h"'),
    ({"duration": None, "until": None}, "", "nothing says how long it waits"),
    ({"duraton": "1h", "until": "{{input.at}}"}, "/duraton", 'did you mean "duration"?'),
    ({"seconds": 3, "duration": 3}, "/seconds", 'did you mean "duration_seconds"?'),
    ({"duration": "1 hour"}, "/duration", "is not a duration"),
    ({"duration": -1}, "/duration", "negative"),
    ({"duration": True}, "/duration", "must be a non-negative number"),
    ({"duration_seconds": "1h"}, "/duration_seconds", 'or "duration": "24h"'),
    ({"duration_seconds": -0.5}, "/duration_seconds", "must be a non-negative number"),
    ({"duration_seconds": "-1"}, "/duration_seconds", "must be a non-negative number"),
    ({"duration_seconds": "nan"}, "/duration_seconds", "must be a non-negative number"),
    ({"duration_seconds": "9e999"}, "/duration_seconds", "must be a non-negative number"),
    ({"duration_seconds": False}, "/duration_seconds", "must be a non-negative number"),
    ({"duration_seconds": [1]}, "/duration_seconds", "must be a non-negative number"),
    ({"duration": 1, "duration_seconds": 1}, "/duration_seconds", "both say how long"),
    ({"until": 1893456000}, "/until", "must be a time in RFC 3339"),
    ({"until": "tomorrow"}, "/until", "must be a time in RFC 3339"),
    ({"until": "2030-01-31"}, "/until", "must be a time in RFC 3339"),
    ({"until": "2030-01-31T12:00:00"}, "/until", "must be a time in RFC 3339 with a zone"),
    ({"until": "2030-02-30T12:00:00Z"}, "/until", "until is no time"),
    ({"duration": "{{secrets.delay}}"}, "/duration", "it may not read secrets"),
]
SIGNAL: list[tuple[Any, str | None, str]] = [
    (None, None, 'a WAIT_FOR_SIGNAL needs one; write "spec": {"signal": "approved"'),
    ({}, "", '"signal" is missing; write "signal": "approved"'),
    ({"event": "approved"}, "/event", "there is no key"),
    ({"signal": "a", "timout": "1h"}, "/timout", 'did you mean "timeout"?'),
    ({"signal": "a", "duration": "1h"}, "/duration", "use one of: signal, timeout"),
    ({"signal": ""}, "/signal", "signal must be a name of 1 to 256 characters, not ''"),
    ({"signal": "x" * 257}, "/signal", "signal must be a name of 1 to 256 characters"),
    ({"signal": 3}, "/signal", "signal must be a name of 1 to 256 characters, not 3"),
    ({"signal": "a", "timeout": "soon"}, "/timeout", "is not a duration"),
    ({"signal": "a", "timeout_seconds": "1h"}, "/timeout_seconds", 'or "timeout": "24h"'),
    ({"signal": "a", "timeout": 0, "timeout_seconds": 0}, "/timeout_seconds", "both say"),
    ({"signal": "{{secrets.name}}", "timeout": 1}, "/signal", "it may not read secrets"),
    ({"signal": "a", "timeout": 1, "on_timeout": "go on"}, "/on_timeout", "fail or continue"),
    ({"signal": "a", "timeout": 1, "on_timeout": ["fail"]}, "/on_timeout", "not a list"),
    ({"signal": "a", "timeout": 1, "on_timeout": "{{input.x}}"}, "/on_timeout", "fail or"),
    ({"signal": "a", "on_timeout": "continue"}, "/on_timeout", 'as in "timeout": "3d"'),
]
EVENT: list[tuple[Any, str | None, str]] = [
    (None, None, 'a WAIT_FOR_EVENT needs one; write "spec": {"event": "approved"'),
    ({"timeout_seconds": 3}, "", '"event" is missing; write "event": "approved"'),
    ({"event": "a", "timeout": "1h"}, "/timeout", 'did you mean "timeout_seconds"?'),
    ({"event": ["a"]}, "/event", "event must be a name of 1 to 256 characters"),
    ({"event": "a", "timeout_seconds": "x"}, "/timeout_seconds", "non-negative number"),
]
WRONG = [
    *(("WAIT", *case) for case in WAIT),
    *(("WAIT_FOR_SIGNAL", *case) for case in SIGNAL),
    *(("WAIT_FOR_EVENT", *case) for case in EVENT),
]


def lone(kind: str, spec: Any, **rest: Any) -> dict[str, Any]:
    node = {"id": "w", "type": kind, "spec": spec, **rest}
    return {"name": "lone", "max_duration": "30d", "nodes": [node]}


# scenario 262
@pytest.mark.rule("D-12", "D-24", "D-37")
@pytest.mark.parametrize(("kind", "spec", "below", "text"), WRONG)
def test_a_wait_that_could_never_be_is_found_before_any_run_waits(
    kind: str, spec: Any, below: str | None, text: str
) -> None:
    found = problems(lone(kind, spec))
    at = "/nodes/0" if below is None else f"/nodes/0/spec{below}"
    assert at in [problem.pointer for problem in found]
    assert text in "\n".join(map(str, found))


GOOD: list[tuple[str, Any]] = [
    ("WAIT", {"duration": "24h"}),
    ("WAIT", {"duration": 0}),
    ("WAIT", {"duration": "{{input.delay}}"}),
    ("WAIT", {"duration": "90"}),
    ("WAIT", {"duration_seconds": 1.5}),
    ("WAIT", {"duration_seconds": " 90.5 "}),
    ("WAIT", {"duration_seconds": "1e3"}),
    ("WAIT", {"duration_seconds": "{{input.delay}}"}),
    ("WAIT", {"until": "2030-01-31T12:00:00Z"}),
    ("WAIT", {"until": "2030-01-31t12:00:00.25+01:00", "duration": None}),
    ("WAIT", {"until": "{{input.at}}", "duration_seconds": 60}),
    ("WAIT", "{{input.spec}}"),
    ("WAIT_FOR_SIGNAL", {"signal": "approved"}),
    ("WAIT_FOR_SIGNAL", {"signal": "Übergabe an Lager 3", "timeout": "7d"}),
    ("WAIT_FOR_SIGNAL", {"signal": "x" * 256, "timeout": 0}),
    ("WAIT_FOR_SIGNAL", {"signal": "approved-{{input.order}}", "timeout_seconds": "60"}),
    ("WAIT_FOR_SIGNAL", "{{input.spec}}"),
    ("WAIT_FOR_SIGNAL", {"signal": "a", "timeout": "{{input.t}}", "on_timeout": "continue"}),
    ("WAIT_FOR_SIGNAL", {"signal": "a", "timeout_seconds": 5, "on_timeout": "fail"}),
    ("WAIT_FOR_SIGNAL", {"signal": "a", "on_timeout": None}),
    ("WAIT_FOR_EVENT", {"event": "approved", "timeout_seconds": None}),
    ("WAIT_FOR_EVENT", {"event": "{{input.event}}", "timeout_seconds": "{{input.t}}"}),
    ("WAIT_FOR_EVENT", "{{input.spec}}"),
]


@pytest.mark.rule("G-75")
@pytest.mark.parametrize(("kind", "spec"), GOOD)
def test_a_wait_may_say_this_and_what_only_a_run_can_tell_is_left_to_it(
    kind: str, spec: Any
) -> None:
    assert problems(lone(kind, spec)) == []


@pytest.mark.rule("G-78")
@pytest.mark.parametrize(
    ("spec", "scope", "rendered"),
    [
        ({"event": "paid"}, {}, {"signal": "paid"}),
        (
            {"event": "paid-{{input.id}}", "timeout_seconds": "{{input.wait}}"},
            {"input": {"id": 7, "wait": 60}},
            {"signal": "paid-7", "timeout_seconds": 60},
        ),
        (
            "{{input}}",
            {"input": {"event": "paid", "timeout_seconds": 1}},
            {"signal": "paid", "timeout_seconds": 1},
        ),
        ("{{input}}", {"input": 7}, 7),
    ],
)
def test_the_older_spelling_reaches_the_kernel_as_the_newer_one(
    spec: Any, scope: dict[str, Any], rendered: Any
) -> None:
    graph = Graph.load(lone("WAIT_FOR_EVENT", spec))
    planned = graph.plan.nodes["w"]
    assert (planned.type, graph.plan.shape.types["w"]) == ("WAIT_FOR_SIGNAL",) * 2
    assert planned.spec.constant is (scope == {})
    assert planned.spec.secrets == {}
    assert planned.spec.render(scope) == rendered
    assert b"WAIT_FOR_EVENT" in graph.source, "the document itself keeps its words"


@pytest.mark.rule("D-12")
def test_null_in_a_document_is_absent_and_null_from_a_template_is_not() -> None:
    spec = {"until": None, "duration": "{{input.delay}}", "duration_seconds": None}
    planned = Graph.load(lone("WAIT", spec)).plan.nodes["w"]
    assert planned.spec.render({"input": {"delay": None}}) == {"duration": None}


def test_the_kernel_knows_every_type_of_a_document_but_the_older_spelling() -> None:
    assert {"WAIT", "WAIT_FOR_SIGNAL"} <= NODE_TYPES
    assert "WAIT_FOR_EVENT" not in NODE_TYPES


@pytest.mark.rule("G-73")
@pytest.mark.parametrize("kind", sorted(WAITS))
@pytest.mark.parametrize("key", ["retry", "timeout", "queue"])
def test_a_wait_has_no_attempts(kind: str, key: str) -> None:
    spec = {"event": "a"} if kind == "WAIT_FOR_EVENT" else {"signal": "a"}
    spec = {"duration": 1} if kind == "WAIT" else spec
    (problem,) = problems(lone(kind, spec, **{key: {"attempts": 2}}))
    assert (problem.pointer, problem.node) == (f"/nodes/0/{key}", "w")
    assert f'a {kind} runs nothing: it has no "{key}"' in problem.message
    own = key == "timeout" and kind != "WAIT"
    assert problem.hint.startswith("say how long it waits as" if own else "take it out")


@pytest.mark.parametrize("policy", ["continue", "drain", "cancel"])
@pytest.mark.rule("D-17")
def test_a_document_says_what_a_failing_branch_means_for_the_others(policy: str) -> None:
    document = {**lone("WAIT", {"duration": 1}), "on_failure": policy}
    assert Graph.load(document).plan.on_failure == policy


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("WAIT_FOR_SIGNAL", {"signal": "a"}),
        ("WAIT_FOR_SIGNAL", {"signal": "a", "timeout": 0}),
        ("WAIT_FOR_SIGNAL", {"signal": "a", "timeout": "0s"}),
        ("WAIT_FOR_EVENT", {"event": "a", "timeout_seconds": "0.0"}),
    ],
)
def test_a_wait_that_may_never_end_is_doubtful(kind: str, spec: Any) -> None:
    document = lone(kind, spec)
    assert warnings(document) == []  # the document itself has an end
    del document["max_duration"]
    (finding,) = warnings(document)
    assert (finding.pointer, finding.node) == ("/nodes/0", "w")
    assert "for ever if the signal never comes" in finding.message


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("WAIT_FOR_SIGNAL", {"signal": "a", "timeout": "1s"}),
        ("WAIT_FOR_SIGNAL", {"signal": "a", "timeout": "{{input.t}}"}),
        ("WAIT_FOR_SIGNAL", "{{input.spec}}"),
        ("WAIT_FOR_EVENT", {"event": "a", "timeout_seconds": 0.5}),
        ("WAIT", {"duration": "1h"}),
        ("WAIT", {"until": "{{input.at}}", "duration": "1h"}),
    ],
)
def test_a_wait_that_ends_is_fine(kind: str, spec: Any) -> None:
    document = lone(kind, spec)
    del document["max_duration"]
    assert warnings(document) == []


@pytest.mark.rule("G-74")
def test_a_duration_beside_a_time_is_doubtful() -> None:
    spec = {"until": "2030-01-31T12:00:00Z", "duration": "1h"}
    (finding,) = warnings(lone("WAIT", spec))
    assert finding.pointer == "/nodes/0/spec"
    assert '"until" goes before a duration' in finding.message


def test_what_a_wait_gave_is_read_like_any_output() -> None:
    document = lone("WAIT_FOR_SIGNAL", {"signal": "a"})
    document["nodes"].append(
        {"id": "t", "type": "TASK", "spec": {"step": "work", "input": "{{tasks.w.output.by}}"}}
    )
    document["edges"] = [{"from": "w", "to": "t"}]
    graph = Graph.load(document)
    assert graph.plan.nodes["t"].reads == ("w",)
    assert graph.plan.shape.successors["w"] == ("t",)
